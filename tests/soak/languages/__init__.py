"""One program in the languages of Pulumi, judged by the packed policy pack through the `pulumi` command."""
