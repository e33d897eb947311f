"""The plugin of the package `holdfast`, as the language host of Python runs it."""

from pulumi_holdfast.package_plugin import serve

serve()
