"""The resource group that a stack on Azure is in."""
