// SPDX-License-Identifier: Apache-2.0

package awsactions

func ecrActions() []Action {
	repository := []string{"repository"}
	const push = "layers are pushed and pulled by the registry's own protocol: use docker, crane or skopeo"
	const policy = "repositories have no policies of their own here: IAM's policies alone decide"
	const lifecycle = "nothing expires images here: remove them with BatchDeleteImage"
	return []Action{
		{Name: "GetAuthorizationToken", Mark: Real},
		{Name: "CreateRepository", Mark: Real, Resources: repository, Keys: tagged()},
		{Name: "DescribeRepositories", Mark: Real, Resources: repository},
		{Name: "DeleteRepository", Mark: Real, Resources: repository},
		{Name: "PutImageTagMutability", Mark: Real, Resources: repository},
		{Name: "ListImages", Mark: Real, Resources: repository},
		{Name: "DescribeImages", Mark: Real, Resources: repository},
		{Name: "BatchGetImage", Mark: Real, Resources: repository},
		{Name: "BatchDeleteImage", Mark: Real, Resources: repository},
		{Name: "PutImage", Mark: Real, Resources: repository},
		{Name: "ListTagsForResource", Mark: Real, Resources: repository},
		{Name: "TagResource", Mark: Real, Resources: repository, Keys: tagged()},
		{Name: "UntagResource", Mark: Real, Resources: repository, Keys: []string{"aws:TagKeys"}},
		{Name: "BatchCheckLayerAvailability", Mark: Refused, Reason: push},
		{Name: "GetDownloadUrlForLayer", Mark: Refused, Reason: push},
		{Name: "InitiateLayerUpload", Mark: Refused, Reason: push},
		{Name: "UploadLayerPart", Mark: Refused, Reason: push},
		{Name: "CompleteLayerUpload", Mark: Refused, Reason: push},
		{Name: "DescribeRegistry", Mark: Refused, Reason: "the registry has no replication and no settings"},
		{Name: "PutImageScanningConfiguration", Mark: Refused, Reason: "nothing scans images here"},
		{Name: "SetRepositoryPolicy", Mark: Refused, Reason: policy},
		{Name: "GetRepositoryPolicy", Mark: Record, Resources: repository},
		{Name: "DeleteRepositoryPolicy", Mark: Record, Resources: repository},
		{Name: "PutLifecyclePolicy", Mark: Refused, Reason: lifecycle},
		{Name: "GetLifecyclePolicy", Mark: Record, Resources: repository},
		{Name: "DeleteLifecyclePolicy", Mark: Record, Resources: repository},
	}
}

func ecrResources() []Resource {
	return []Resource{{Type: "repository", ARN: "arn:${Partition}:ecr:${Region}:${Account}:repository/${RepositoryName}"}}
}
