# Training on spot: {stack}

A [Pulumi](https://www.pulumi.com) project with one stack, `{stack}`: a Kubernetes cluster for training on spot, with ladders that
jobs fall back on. Holdfast {version} is its program; `stacks/Pulumi.{stack}.yaml` is all that is yours to write.

## Begin

1. Copy `{wheel}` from the release of Holdfast to `wheels/`, compare its sum with `SHA256SUMS` of the release,
   and commit it. Holdfast is on no package index: a package of that name on PyPI is another program.
2. `python3 -m venv .venv && .venv/bin/pip install -r requirements.txt`
3. Edit the lines of `stacks/Pulumi.{stack}.yaml` that are marked with `TODO`.
4. `.venv/bin/holdfast cost {stack}` prints what it costs an hour, before anything is spent.
5. `pulumi login`, then `pulumi stack init {stack}` and `pulumi up -s {stack}`. `.venv/bin/holdfast bootstrap {cloud}` makes a state
   store and a key in your cloud.

## Rehearse, with no account

1. `.venv/bin/pip install './wheels/{wheel}[{cloud},rehearsal]'`
2. Copy `holdfast-tools-linux-x86_64.tar.gz` and `SHA256SUMS` of the release into one folder outside of this repository, then
   `HOLDFAST_TOOLS=FOLDER/holdfast-tools-linux-x86_64.tar.gz .venv/bin/holdfast tools`. Without the archive, `.venv/bin/holdfast tools`
   builds them for 19 minutes; that needs Go.
3. `.venv/bin/holdfast rehearse {stack}`: preview, up, a lost spot node, refresh and destroy on this machine.

## Deliver

| workflow | does |
|---|---|
| `preview` | comments on a pull request: plan, policies, and cost before and after |
| `deploy` | updates stacks that end in `-dev` from main, and those that end in `-prod` from a tag `v…`, as their saved plan says |
| `drift` | keeps one issue for each stack that differs from its configuration |

They need these variables of the repository: `DEPLOY` with the value `true`, {variables}, and `PULUMI_BACKEND_URL` or the secret
`PULUMI_ACCESS_TOKEN`; and the environments `preview-{stack}` and `deploy-{stack}`, the second one with reviewers.

## Upgrade

Copy the new wheel to `wheels/`, write its name in `requirements.txt`, and read the notes of the release. Then rehearse, and open a
pull request: its comment must show no `replace` that the notes do not name.
