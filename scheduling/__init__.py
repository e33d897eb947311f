"""Pure facts and rules of where pods may land; imported by every other package, imports none of them."""
