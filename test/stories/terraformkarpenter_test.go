// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// likeKarpentersModule describes for the cluster muster the resources that terraform-aws-modules/eks's submodule karpenter has with its
// defaults (version 20.37), and the instance profile that it makes by an option: the roles of the controller and of the nodes, the
// association of the controller's pods, the queue of interruptions with its policy, four rules with their target, an access entry.
const likeKarpentersModule = `
variable "tags" {
  type    = map(string)
  default = { Environment = "test" }
}

locals {
  cluster = "muster"
  rules = {
    HealthEvent         = { source = "aws.health", kind = "AWS Health Event" }
    SpotInterrupt       = { source = "aws.ec2", kind = "EC2 Spot Instance Interruption Warning" }
    InstanceRebalance   = { source = "aws.ec2", kind = "EC2 Instance Rebalance Recommendation" }
    InstanceStateChange = { source = "aws.ec2", kind = "EC2 Instance State-change Notification" }
  }
}

data "aws_region" "current" {}
data "aws_partition" "current" {}
data "aws_caller_identity" "current" {}

data "aws_iam_policy_document" "controller_trust" {
  statement {
    sid     = "PodIdentity"
    actions = ["sts:AssumeRole", "sts:TagSession"]
    principals {
      type        = "Service"
      identifiers = ["pods.eks.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "controller" {
  name_prefix           = "KarpenterController-"
  path                  = "/"
  description           = "Karpenter controller IAM role"
  assume_role_policy    = data.aws_iam_policy_document.controller_trust.json
  force_detach_policies = true
  tags                  = var.tags
}

data "aws_iam_policy_document" "controller" {
  statement {
    sid       = "AllowScopedEC2InstanceAccessActions"
    actions   = ["ec2:RunInstances", "ec2:CreateFleet"]
    resources = [for kind in ["::image/*", "::snapshot/*", ":*:security-group/*", ":*:subnet/*"] : "arn:${data.aws_partition.current.partition}:ec2:${data.aws_region.current.name}${kind}"]
  }

  statement {
    sid       = "AllowScopedDeletion"
    actions   = ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"]
    resources = ["arn:${data.aws_partition.current.partition}:ec2:${data.aws_region.current.name}:*:instance/*"]
    condition {
      test     = "StringEquals"
      variable = "aws:ResourceTag/kubernetes.io/cluster/${local.cluster}"
      values   = ["owned"]
    }
    condition {
      test     = "StringLike"
      variable = "aws:ResourceTag/karpenter.sh/nodepool"
      values   = ["*"]
    }
  }

  statement {
    sid       = "AllowPricingReadActions"
    actions   = ["pricing:GetProducts"]
    resources = ["*"]
  }

  statement {
    sid       = "AllowInterruptionQueueActions"
    actions   = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.this.arn]
  }

  statement {
    sid       = "AllowPassingInstanceRole"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.node.arn]
    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["ec2.amazonaws.com"]
    }
  }

  statement {
    sid       = "AllowAPIServerEndpointDiscovery"
    actions   = ["eks:DescribeCluster"]
    resources = ["arn:${data.aws_partition.current.partition}:eks:${data.aws_region.current.name}:${data.aws_caller_identity.current.account_id}:cluster/${local.cluster}"]
  }
}

resource "aws_iam_policy" "controller" {
  name_prefix = "KarpenterController-"
  path        = "/"
  description = "Karpenter controller IAM policy"
  policy      = data.aws_iam_policy_document.controller.json
  tags        = var.tags
}

resource "aws_iam_role_policy_attachment" "controller" {
  role       = aws_iam_role.controller.name
  policy_arn = aws_iam_policy.controller.arn
}

resource "aws_eks_pod_identity_association" "karpenter" {
  cluster_name    = local.cluster
  namespace       = "kube-system"
  service_account = "karpenter"
  role_arn        = aws_iam_role.controller.arn
  tags            = var.tags
}

resource "aws_sqs_queue" "this" {
  name                      = "Karpenter-${local.cluster}"
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}

data "aws_iam_policy_document" "queue" {
  statement {
    sid       = "SqsWrite"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.this.arn]
    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com", "sqs.amazonaws.com"]
    }
  }

  statement {
    sid       = "DenyHTTP"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.this.arn]
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_sqs_queue_policy" "this" {
  queue_url = aws_sqs_queue.this.url
  policy    = data.aws_iam_policy_document.queue.json
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each      = local.rules
  name_prefix   = "Karpenter${each.key}-"
  description   = "Karpenter interrupt - ${each.value.kind}"
  event_pattern = jsonencode({ source = [each.value.source], detail-type = [each.value.kind] })
  tags          = merge({ ClusterName = local.cluster }, var.tags)
}

resource "aws_cloudwatch_event_target" "this" {
  for_each  = local.rules
  rule      = aws_cloudwatch_event_rule.this[each.key].name
  target_id = "KarpenterInterruptionQueueTarget"
  arn       = aws_sqs_queue.this.arn
}

data "aws_iam_policy_document" "node_trust" {
  statement {
    sid     = "EKSNodeAssumeRole"
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "node" {
  name_prefix           = "Karpenter-${local.cluster}-"
  path                  = "/"
  assume_role_policy    = data.aws_iam_policy_document.node_trust.json
  force_detach_policies = true
  tags                  = var.tags
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each   = toset(["AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKS_CNI_Policy"])
  role       = aws_iam_role.node.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/${each.key}"
}

resource "aws_eks_access_entry" "node" {
  cluster_name  = local.cluster
  principal_arn = aws_iam_role.node.arn
  type          = "EC2_LINUX"
  tags          = var.tags
  depends_on    = [aws_sqs_queue_policy.this]
}

resource "aws_iam_instance_profile" "this" {
  name_prefix = "Karpenter-${local.cluster}-"
  path        = "/"
  role        = aws_iam_role.node.name
  tags        = var.tags
}
`

// TestTerraformLikeKarpentersModule makes what Karpenter needs of AWS with the requests of the community's module, plans it empty, sends a
// machine's interruption through the module's rules into its queue, changes all tags, and destroys it.
//
//story:about cloud/sqs cloud/events cloud/eks/podassociations iam/identityservice
func TestTerraformLikeKarpentersModule(t *testing.T) {
	t.Parallel()
	tf := newTerraformOf(t, func(dir string, example map[string][]byte) {
		writeModule(t, dir, map[string][]byte{"versions.tf": example["versions.tf"], "karpenter.tf": []byte(likeKarpentersModule)})
	})
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	tf.as = w

	tf.made()
	tf.nothingToDo()
	var queue struct {
		QueueURL string `json:"QueueUrl"`
	}
	w.mustAWS(&queue, "sqs", "get-queue-url", "--queue-name", "Karpenter-muster")
	id := w.mustKubectl("--context", "muster-management", "get", "machines", "-o", "jsonpath={.items[0].metadata.name}")
	i.muster("drill", id, "rebalance")
	w.nextEvent(queue.QueueURL, "EC2 Instance Rebalance Recommendation", id)

	tf.apply("-var", `tags={Environment="other"}`)
	var tags struct{ Tags map[string]string }
	out, err := w.aws(w.admin, "sqs", "list-queue-tags", "--queue-url", queue.QueueURL, "--output", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &tags)
	}
	if err != nil || tags.Tags["Environment"] != "other" {
		t.Errorf("the queue's tags are %s, %v", strings.TrimSpace(out), err)
	}
	tf.destroyed()
	w.eventually("there is what there was before", func() error {
		if after := w.whatThereIs(); after != before {
			return fmt.Errorf("before:\n%s\nafter destroy:\n%s", before, after)
		}
		return nil
	})
}
