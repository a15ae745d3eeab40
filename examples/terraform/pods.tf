# SPDX-License-Identifier: Apache-2.0

locals {
  issuer = replace(aws_iam_openid_connect_provider.this.url, "https://", "")
}

# Pods of the service account var.app_service_account have this role, if the service account is annotated with it:
# eks.amazonaws.com/role-arn.
data "aws_iam_policy_document" "app" {
  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]
    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.this.arn]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:sub"
      values   = ["system:serviceaccount:${var.app_namespace}:${var.app_service_account}"]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "app" {
  name               = "${var.name}-app"
  assume_role_policy = data.aws_iam_policy_document.app.json
  tags               = var.tags
}

output "app_role_arn" {
  description = "ARN of the role for pods, for the annotation eks.amazonaws.com/role-arn of their service account."
  value       = aws_iam_role.app.arn
}
