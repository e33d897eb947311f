"""Facts and rules about where pods can be scheduled. Every other package imports this one; it imports none of them."""
