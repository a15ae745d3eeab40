# SPDX-License-Identifier: Apache-2.0

variable "name" {
  description = "Name of the cluster, and the beginning of other names."
  type        = string
  default     = "blue"
}

variable "cidr_block" {
  description = "Range of the VPC's addresses."
  type        = string
  default     = "10.20.0.0/16"
}

variable "node_count" {
  description = "Number of nodes."
  type        = number
  default     = 1
}

variable "node_labels" {
  description = "Labels of nodes."
  type        = map(string)
  default     = { pool = "web" }
}

variable "node_taints" {
  description = "Taints of nodes: key, value and effect, such as NO_SCHEDULE."
  type        = list(object({ key = string, value = string, effect = string }))
  default     = []
}

variable "node_user_data" {
  description = "A document for the nodes' user data, such as a NodeConfig; a change of it makes a new version of the launch template."
  type        = string
  default     = <<-EOT
    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      kubelet:
        config:
          maxPods: 40
  EOT
}


variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = { example = "terraform" }
}

variable "app_namespace" {
  description = "Namespace of the service account whose pods have the role app_role_arn."
  type        = string
  default     = "default"
}

variable "app_service_account" {
  description = "Service account whose pods have the role app_role_arn."
  type        = string
  default     = "app"
}
