"""The sweeper engine: catalog < space < timing < matching < search < main. Knows no Kubernetes and no deployment."""
