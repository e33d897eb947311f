"""The lifecycle of a stack: preview, up, use, refresh and destroy, with what each step must show."""
