"""The generator of the machine tables of AWS and Azure: what each says of its machines, in one small file."""
