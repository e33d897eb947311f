"""The command line `holdfast`, and the plugin of kubectl."""
