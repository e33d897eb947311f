{
  $schema: "https://docs.renovatebot.com/renovate-schema.json",
  extends: ["config:recommended", "helpers:pinGitHubActionDigests"],
  // A release that is withdrawn is usually withdrawn within days.
  minimumReleaseAge: "7 days",
  // Holdfast is on no package index: README.md says how to upgrade its wheel.
  ignoreDeps: ["holdfast"],
  customManagers: [
    {
      // The engine of the workflows. Take the version that the release of Holdfast names.
      customType: "regex",
      managerFilePatterns: ["/^\\.github/.*\\.yaml$/"],
      matchStrings: ["pulumi-version: (?<currentValue>\\S+)"],
      datasourceTemplate: "go",
      depNameTemplate: "github.com/pulumi/pulumi/pkg/v3",
    },
    {
      customType: "regex",
      managerFilePatterns: ["/^\\.github/.*\\.yaml$/"],
      matchStrings: ["--kubelogin-version (?<currentValue>\\S+)"],
      datasourceTemplate: "github-releases",
      depNameTemplate: "Azure/kubelogin",
    },
  ],
}
