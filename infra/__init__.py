"""The Pulumi program: parses a stack's configuration and composes components; declares no resource itself."""
"""What `pulumi up` runs.""" ==> """The program that `pulumi up` runs."""
"""The clouds a stack can be on: for each one its parser, its composition root and the provider packages it uses. ==> """The clouds that a stack can use: for each, its parser, its composition root, and its provider packages.
What is one cloud's alone is imported only when a stack is on it: a user of one cloud installs, and imports, one SDK. ==> The modules of a cloud are imported only for a stack on that cloud, so that a user of one cloud installs one SDK.
#: Values of a stack that stand beside its document, under a provider's own keys (`aws:region`); None: not set. ==> #: Values of a stack outside its document, under a provider's own keys (`aws:region`). None: not set.
def _within_reach(document: Json, settings: Settings, stack: str) -> None: ==> def _always_reachable(document: Json, settings: Settings, stack: str) -> None:
    """For clouds whose clusters answer from anywhere, or say why not by themselves.""" ==>     """For clouds whose API servers are reachable from anywhere, or report the reason themselves."""
    """A cloud as the program sees it. ==>     """A cloud as the program uses it.
<<<
    `read` parses a stack's document and raises ConfigError with every problem; `build` does the same, then composes
    the stack of that name. Both are given the stack's values under the keys of `settings`. `provider_packages` are
    the Pulumi providers its stacks use. `missing_command` tells of a command that is not here and without which
    nobody gets into a cluster of this cloud; `out_of_reach` of a stack's cluster that is there and cannot be reached.
===
    `read` parses a stack's document and raises ConfigError with every problem. `build` does the same, then composes
    the stack of that name. Both get the stack's values under the keys of `settings`. `provider_packages` are the
    Pulumi providers that its stacks use. `missing_command` reports a credential plugin that clients of a cluster need
    and that is not installed. `unreachable_api_server` reports an existing cluster whose API server does not answer.
>>>
out_of_reach: Callable[[Json, Settings, str], Problem | None] = _within_reach ==> unreachable_api_server: Callable[[Json, Settings, str], Problem | None] = _always_reachable
    # Of a profile without a name the AWS CLI says only that it could not be found. ==>     # An empty profile is no profile: the AWS CLI would only report that it cannot find it.
def _azure_out_of_reach( ==> def _unreachable_azure_api_server(
        out_of_reach=_azure_out_of_reach, ==>         unreachable_api_server=_unreachable_azure_api_server,
    """The cloud that a stack's document names, and the document. ==>     """The cloud that a stack's document names, with the document.
    Raises ConfigError where there is no document, or none of the clouds known here in it. ==>     Raises ConfigError if there is no document, or if it names no known cloud.
        allowed="a mapping of cloud, pools, namespaces and what else the cloud has", ==>         allowed="a mapping of cloud, pools, namespaces and the cloud's other fields",
        fix="Start from stacks/Pulumi.local.yaml; run from the project's folder and name the stack with -s.", ==>         fix="Start from stacks/Pulumi.local.yaml. Run in the project's directory and select the stack with -s.",
"""Names: what a resource is called in the program, and what it is called where it lives. ==> """Derives logical names (in the Pulumi state) and physical names (in the cloud and the cluster).
<<<
The logical name is a key in the state: it is composed of the concept and the user's own name, and never changes. The
physical name is what `kubectl` shows: it is the user's own name wherever the place lets it be, so that the name in
the configuration, in a job's selector and in an event are one and the same.
===
A logical name is a key in the state: it consists of the concept and the user's name, and never changes. A physical name
is what `kubectl` shows: it is the user's name wherever that is allowed, so that the name in the configuration, in a
job's node selector and in an event are the same.
>>>
# Kubernetes holds Namespace names and label values to this; a pool's name is both a NodePool's name and a label value. ==> # The limit of Kubernetes for names of namespaces and for label values. A pool's name is a NodePool name and a label value.
    """Whether a name can be a Namespace, a NodePool and a label value alike.""" ==>     """Whether a name is valid for a Namespace, a NodePool and a label value."""
    """The nearest allowed name (`A100_Spot` → `a100-spot`); empty where nothing of the name can stay.""" ==>     """The nearest valid name (`A100_Spot` → `a100-spot`); empty if the name has no valid character."""
    """A text of letters, digits, `.`, `_` and `-` (a stack's name) cut to what Kubernetes takes as a label value.""" ==>     """A text of letters, digits, `.`, `_` and `-` (a stack's name) shortened to a valid Kubernetes label value."""
    """A text cut to what Google Cloud takes as a label's value: lower case, without dots.""" ==>     """A text shortened to a valid Google Cloud label value: lower case, without dots."""
    """The name of a stack's cluster, which `aws eks list-clusters` shows and its machines are tagged with. ==>     """The name of a stack's EKS cluster, which `aws eks list-clusters` shows and which tags its instances.
    A stack's name may have dots, a cluster's on EKS none. ==>     A stack's name may contain dots; the name of an EKS cluster may not.
    """Logical name of where a pool's machines stand to each other.""" ==>     """Logical name of a pool's placement group."""
    """Logical name of a training namespace's claim on its checkpoints.""" ==>     """Logical name of a training namespace's volume claim for checkpoints."""
    """Logical name of a training namespace's way to its checkpoints.""" ==>     """Logical name of a training namespace's access to its checkpoints."""
"""The program that the engine runs, and the same configuration as tools outside a run see it.""" ==> """Runs the Pulumi program, and parses stack files for tools that run outside the engine."""
def run(*, needs_way_in: bool = False) -> None: ==> def run(*, check_access: bool = False) -> None:
    """Compose the stack that is selected. ==>     """Compose the selected stack.
<<<
    Raises pulumi.RunError, which the engine shows as one message, for a configuration that cannot be used, and with
    `needs_way_in` where a command is missing by which clients get into the cloud's cluster, or where a cluster that is
    there does not answer; nothing is registered then.
===
    Raises pulumi.RunError, which the engine shows as one message, for an invalid configuration. With `check_access` it
    also raises if a credential plugin is missing, or if the API server of an existing cluster does not answer. Nothing
    is registered then.
>>>
        if needs_way_in: ==>         if check_access:
            _refuse(cloud.missing_command()) ==>             _raise(cloud.missing_command())
            _refuse(cloud.out_of_reach(document, settings, stack)) ==>             _raise(cloud.unreachable_api_server(document, settings, stack))
def _refuse(problem: Problem | None) -> None: ==> def _raise(problem: Problem | None) -> None:
    """Read the platform of a stack file without running anything. ==>     """Parse a stack file without running the engine.
    Raises ConfigError with every problem, the unreadable file included. ==>     Raises ConfigError with every problem, including a file that cannot be read.
    """The Pulumi providers which a platform's stack uses.""" ==>     """The Pulumi providers that a platform's stack uses."""
        # As the engine sees it, for which a date is a text and every key is one. ==>         # The engine reads dates and keys as text.
        fix="Mend the file, or name another stack: stacks/ holds one file for each.", ==>         fix="Correct the file, or select another stack: stacks/ has one file for each.",
        fix="Write it as nested YAML in the stack file; `pulumi config set` needs --path for single fields.", ==>         fix="Write nested YAML in the stack file; `pulumi config set` needs --path for single fields.",
"""Every version the platform is built of, each in this one place.""" ==> """Every version that the platform installs. docs/extending.md lists what else a new version changes."""
# Of this repository's own image: as `version` in pyproject.toml. ==> # This repository's own image; the same as `version` in pyproject.toml.
# What pods run that only hold a place. ==> # The image of placeholder pods.
# The chart of Karpenter's simulated provider lies in Karpenter's repository and has kept this number of its own. ==> # The chart of Karpenter's simulated provider, in Karpenter's repository, has its own version.
# Of public.ecr.aws/karpenter/controller at KARPENTER. It wins over the tag: change both together. ==> # The digest of public.ecr.aws/karpenter/controller at KARPENTER. It overrides the tag: change both together.
# The chart's; it names the plugin's image itself. ==> # The version of the chart, which names the plugin's image.
# The release of EKS's Amazon Linux 2023 images that all nodes start from, and the kubelet it holds for KUBERNETES. ==> # The release of EKS's Amazon Linux 2023 images that all nodes use, and its kubelet for KUBERNETES.
# A newer one is a drift: a pool's machines follow with `rollOut: true`, the system nodes at once, one by one. ==> # A newer release is drift: Karpenter replaces a pool's nodes with `rollOut: true`; system nodes are replaced one by one.
"""What every section of the configuration is: closed, frozen, spelled in camelCase.""" ==> """The base class of every section of the configuration: no unknown fields, immutable, names in camelCase."""
    """A mapping in the configuration with a fixed set of fields. ==>     """A mapping of the configuration with a fixed set of fields.
<<<
    Each field's description says what is allowed there and its first example how it is written: the texts of
    refusals are made of them.
===
    A field's description says what is allowed, and its first example shows how to write it. Problems quote both.
>>>
    #: Names from elsewhere that users try here, and the sentence which says what to write instead. ==>     #: Names from other tools that users try here, each with the sentence that says what to write instead.
    """The fields as users spell them.""" ==>     """The names of the fields in the configuration."""
    """Tell variants, each tagged with the name of its class, apart by a function of the value as it is written.""" ==>     """Choose one of several sections, tagged with their class names, by a function of the unparsed value."""
        # A default is no mapping but the model itself. ==>         # A default is an instance of the section, not a mapping.
"""Turns the parser's complaints into refusals that name field, value, what is allowed and the fix.""" ==> """Converts errors of Pydantic to problems with field, value, what is allowed, and the fix."""
    """A value as the user would recognise it, cut where it is long.""" ==>     """A value as JSON, shortened if it is long."""
    """Where a complaint is: the innermost section, the name of the field in it, and the path as it is written.""" ==>     """The location of an error: the innermost section, the name of the field in it, and the path in the document."""
    """Every complaint of the parser about a document that should be a `model`; `root` is the document's path.""" ==>     """The problems of a document that does not parse as a `model`; `root` is the document's path."""
            # The parser counts what it could read: a list whose one item is wrong is not short of any. ==>             # Pydantic counts only valid items: a list with one invalid item is not too short.
    """The place of a complaint: the parser's own without the names of variants, which nobody writes.""" ==>     """The location of an error: Pydantic's own, without the names of variants, which are not in the document."""
    """The sections that a field holds: itself, in a list, as variants or beside None.""" ==>     """The sections in a field's type: the type itself, in a list, as variants, or optional."""
    """The member of an enumeration that the user most likely meant.""" ==>     """The member of an enumeration closest to the value."""
"""Types of single values: a name, a duration, where charts come from.""" ==> """Types of single values on every cloud: names, durations, addresses, image registries, times and dates."""
#: The error type of refusals that bring their own fix. ==> #: The error type of errors with their own fix.
    """A refusal whose text is the field's description and this fix.""" ==>     """An error that the problem shows with this fix."""
    # An unquoted 15 arrives as a number; to the user it is the same slip as "15". ==>     # YAML parses an unquoted 15 as a number; the mistake is the same as "15".
charts run with rights over the cluster. ==> charts run with permissions in the cluster.
        raise error_with_fix("Write a directory, or an address that starts with oci:// or https://.") ==>         raise error_with_fix("Write a directory, or an address that starts with oci:// or https://.")
    f"1 to {naming.DNS_LABEL_LIMIT} lower-case letters, digits and hyphens, first and last no hyphen" ==>     f"1 to {naming.DNS_LABEL_LIMIT} lower-case letters, digits and hyphens; no hyphen at the start or the end"
        raise error_with_fix("Write an IPv4 address and, behind a slash, the bits that are fixed of it.") from None ==>         raise error_with_fix("Write an IPv4 address and a prefix length, such as 203.0.113.0/24.") from None
    # Written with a netmask, without one, or with bits beyond it: clouds take one way of writing a block. ==>     # A netmask, no prefix length, or host bits: clouds accept a single notation.
        raise error_with_fix("Write a registry's host and, where its images lie deeper, their path.") ==>         raise error_with_fix("Write the registry's host and, if needed, the path of its images.")
    """The day as RFC 5545 spells it.""" ==>     """The day as in RFC 5545."""
    """How many days it is after Monday.""" ==>     """The number of days after Monday."""
    # YAML 1.1 reads an unquoted 22:00 as a number to the base of 60. ==>     # YAML 1.1 parses an unquoted 22:00 as a base 60 number.
    # An unquoted day arrives as an instant from one reader of YAML and as a day from another. ==>     # One YAML parser returns an unquoted date as a timestamp, another as a date.
        raise error_with_fix("Write a day that the calendar has.") from None ==>         raise error_with_fix("Write a date of the calendar.") from None
        'Write a day that stays the same, such as "2026-12-01": one that moved would change at every update.' ==>         'Write a fixed date, such as "2026-12-01": a relative one would change with every update.'
DATE_ALLOWED: Final = "a day, year first, in quotes" ==> DATE_ALLOWED: Final = "a date as YYYY-MM-DD, in quotes"
"""Reads a document into a model, or says everything that is wrong with it.""" ==> """Loads documents: parses YAML, validates models, and collects every problem of a document."""
#: The key of the one structured value in a stack file; the root of every path in a refusal. ==> #: The key of the structured value in a stack file, and the root of every path in a problem.
    """Read a document as a `model` that also keeps `rules`, which get the document as it was written. ==>     """Parse a document as a `model` and check it with `rules`, which get the unparsed document.
    Raises ConfigError with every problem: of single values, and across fields as far as these could be read. ==>     Raises ConfigError with every problem: of single values, and across the fields that could be parsed.
        # Through JSON, where the strict parser takes a list for a tuple and a text for a member, and nothing else. ==>         # From JSON, the strict parser accepts a list for a tuple and a text for an enum member, and no other conversion.
    """A list's readable items by their place; `names` holds every item's name that is a text, readable or not.""" ==>     """The valid items of a list by index; `names` has the name of every item, valid or not, that has one."""
    """Whether the whole list could be read.""" ==>     """Whether every item of the list is valid."""
    """Whether an item that could not be read may be the one of this name.""" ==>     """Whether an item that could not be parsed may have this name."""
        # What a refused name was meant to be is known where a label can be made of it. ==>         # An invalid name may stand for the label that is closest to it.
    """The same with these items taken for unread.""" ==>     """A copy in which these items count as invalid."""
    """Read what can be read of a list of `model`.""" ==>     """Parse the valid items of a list of `model`."""
    """Read one section of a document: all defaults where it is left out, None where it cannot be read.""" ==>     """Parse one section of a document: all defaults if it is missing, None if it is invalid."""
    """Refuses what PyYAML passes over, and the engine would not.""" ==>     """Rejects duplicate keys, which PyYAML accepts and the engine does not."""
f"the key {key.value} stands there twice" ==> f"the key {key.value} is duplicated"
    """What a YAML text holds. Raises yaml.YAMLError.""" ==>     """The content of a YAML text. Raises yaml.YAMLError."""
self._questions.needed( ==> self._queries.required(
self._questions.tried( ==> self._queries.optional(
self._questions.leave_open( ==> self._queries.record_failure(
questions.needed( ==> queries.required(
self._questions = CloudQueries( ==> self._queries = CloudQueries(
    questions = CloudQueries( ==>     queries = CloudQueries(
unanswered=self._questions.unanswered ==> failed_queries=self._queries.failed
platform, ask = self._platform, self._questions ==> platform, queries = self._platform, self._queries
ask.needed( ==> queries.required(
ask.tried( ==> queries.optional(
unanswered=ask.unanswered ==> failed_queries=queries.failed

