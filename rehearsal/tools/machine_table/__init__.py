"""The generator of AWS's machine table: what EC2 says of its instance types, in one small file."""
