"""How Azure words a refusal."""


def said(code: str, message: str) -> str:
    """Return a refusal as azure-native shows it."""
    return f'Code="{code}" Message="{message}"'
