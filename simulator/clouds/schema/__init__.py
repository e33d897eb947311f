"""What a provider's installed SDK says about its types: names, properties, what is required."""
