# SPDX-License-Identifier: Apache-2.0

# The provider is configured by the environment: eval "$(muster env)". Without it the same files describe a cluster on AWS.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.90, < 7.0"
    }
  }
}
