// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// likeSelfManagedNodes describes for the cluster muster the resources that terraform-aws-modules/eks has for a group of
// self_managed_node_groups with its defaults (version 20.37): a launch template, an Auto Scaling group of the account's own that a new
// version of the template refreshes, a schedule, and the role of the nodes with its profile and access entry. The volume is smaller.
const likeSelfManagedNodes = `
variable "made" {
  type    = string
  default = "first"
}

data "aws_partition" "current" {}

data "aws_eks_cluster" "this" {
  name = "muster"
}

data "aws_ssm_parameter" "image" {
  name = "/aws/service/eks/optimized-ami/${data.aws_eks_cluster.this.version}/amazon-linux-2023/x86_64/standard/recommended/image_id"
}

data "aws_iam_policy_document" "trust" {
  statement {
    sid     = "EKSNodeAssumeRole"
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "this" {
  name_prefix           = "own-node-group-"
  description           = "Self managed node group IAM role"
  assume_role_policy    = data.aws_iam_policy_document.trust.json
  force_detach_policies = true
}

resource "aws_iam_role_policy_attachment" "this" {
  for_each   = toset(["AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryReadOnly", "AmazonEKS_CNI_Policy"])
  role       = aws_iam_role.this.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/${each.key}"
}

resource "aws_iam_instance_profile" "this" {
  name_prefix = "own-node-group-"
  role        = aws_iam_role.this.name

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_eks_access_entry" "this" {
  cluster_name  = data.aws_eks_cluster.this.name
  principal_arn = aws_iam_role.this.arn
  type          = "EC2_LINUX"
}

resource "aws_launch_template" "this" {
  name_prefix            = "own-"
  description            = "Custom launch template for own self managed node group"
  update_default_version = true
  image_id               = data.aws_ssm_parameter.image.value
  instance_type          = "t3.small"
  vpc_security_group_ids = [data.aws_eks_cluster.this.vpc_config[0].cluster_security_group_id]

  user_data = base64encode(<<-EOT
    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      cluster:
        name: ${data.aws_eks_cluster.this.name}
        apiServerEndpoint: ${data.aws_eks_cluster.this.endpoint}
        certificateAuthority: ${data.aws_eks_cluster.this.certificate_authority[0].data}
        cidr: ${data.aws_eks_cluster.this.kubernetes_network_config[0].service_ipv4_cidr}
      kubelet:
        flags: ["--node-labels=made=${var.made}"]
  EOT
  )

  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size           = 8
      volume_type           = "gp3"
      encrypted             = true
      delete_on_termination = true
    }
  }

  iam_instance_profile {
    arn = aws_iam_instance_profile.this.arn
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 2
  }

  monitoring {
    enabled = true
  }

  dynamic "tag_specifications" {
    for_each = toset(["instance", "volume", "network-interface"])
    content {
      resource_type = tag_specifications.key
      tags          = { Name = "own" }
    }
  }

  depends_on = [aws_iam_role_policy_attachment.this, aws_eks_access_entry.this]

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_autoscaling_group" "this" {
  name_prefix         = "own-"
  min_size            = 1
  max_size            = 3
  desired_capacity    = 1
  vpc_zone_identifier = data.aws_eks_cluster.this.vpc_config[0].subnet_ids

  launch_template {
    id      = aws_launch_template.this.id
    version = aws_launch_template.this.default_version
  }

  instance_refresh {
    strategy = "Rolling"
    preferences {
      min_healthy_percentage = 66
    }
  }

  initial_lifecycle_hook {
    name                 = "drain"
    lifecycle_transition = "autoscaling:EC2_INSTANCE_TERMINATING"
    default_result       = "CONTINUE"
    heartbeat_timeout    = 30
  }

  dynamic "tag" {
    for_each = { Name = "own", "kubernetes.io/cluster/muster" = "owned", "k8s.io/cluster/muster" = "owned" }
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [desired_capacity]
  }
}

resource "aws_autoscaling_schedule" "this" {
  autoscaling_group_name = aws_autoscaling_group.this.name
  scheduled_action_name  = "weekend"
  min_size               = 0
  max_size               = 0
  desired_capacity       = 0
  recurrence             = "0 0 * * 6"
  time_zone              = "Etc/GMT"
}
`

// TestTerraformSelfManagedNodes makes nodes of an Auto Scaling group of its own with the requests of the community's module, plans it
// empty, has a new version of the launch template replace the node, and destroys it.
//
//story:about cloud/autoscaling cloud/scalingcontroller cloud/scalinglaunch cloud/ec2/instance cloud/launchtemplate
func TestTerraformSelfManagedNodes(t *testing.T) {
	t.Parallel()
	tf := newTerraformOf(t, func(dir string, example map[string][]byte) {
		writeModule(t, dir, map[string][]byte{"versions.tf": example["versions.tf"], "nodes.tf": []byte(likeSelfManagedNodes)})
	})
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	tf.as = w

	tf.made()
	tf.nothingToDo()
	first := w.selfManaged("first")
	if size := w.mustKubectl("--context", "muster-management", "get", "machine", first, "-o", "jsonpath={.status.diskSize}"); size != "8" {
		t.Errorf("its disk has %s GiB", size)
	}
	tf.apply("-var=made=second")
	if second := w.selfManaged("second"); second == first {
		t.Errorf("%s has the labels of both templates", first)
	}
	tf.destroyed()
	w.eventually("there is what there was before", func() error {
		if after := w.whatThereIs(); after != before {
			return fmt.Errorf("before:\n%s\nafter destroy:\n%s", before, after)
		}
		return nil
	})
}

// selfManaged waits until one node is Ready, which has a label, and returns its machine.
func (w *iam) selfManaged(made string) (machine string) {
	w.t.Helper()
	took := w.eventually("the one node is of the template "+made, func() error {
		out, err := w.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.labels.made} {.status.conditions[?(@.type=="Ready")].status} {.spec.providerID}{"\n"}{end}`)
		fields := strings.Fields(out)
		if err == nil && (len(fields) != 3 || fields[0] != made || fields[1] != "True") {
			err = errors.New(out)
		}
		if err == nil {
			machine = fields[2][strings.LastIndex(fields[2], "/")+1:]
		}
		return err
	})
	w.t.Logf("%s is Ready after %v", machine, took)
	return machine
}
