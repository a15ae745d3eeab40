# SPDX-License-Identifier: Apache-2.0

output "cluster_name" {
  description = "Name of the cluster; aws eks update-kubeconfig takes it."
  value       = aws_eks_cluster.this.name
}

output "endpoint" {
  description = "URL of the API server."
  value       = aws_eks_cluster.this.endpoint
}

output "admin_role_arn" {
  description = "ARN of the role that is an administrator of the cluster."
  value       = aws_iam_role.admin.arn
}
