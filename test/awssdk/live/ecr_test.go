// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
)

// emptyIndex is the one image that needs no layers.
const emptyIndex = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`

func ecrActions() []action {
	name := aws.String("live/app")
	arn := func(w *world) *string {
		return aws.String("arn:aws:ecr:" + w.config.Region + ":" + account + ":repository/" + *name)
	}
	tags := func(w *world, want string) {
		got := ""
		for _, tag := range need(w.ecr.ListTagsForResource(w.ctx(), &ecr.ListTagsForResourceInput{ResourceArn: arn(w)})).Tags {
			got += aws.ToString(tag.Key) + "=" + aws.ToString(tag.Value) + " "
		}
		if got != want {
			w.Errorf("tags %q, want %q", got, want)
		}
	}
	return []action{
		{"GetAuthorizationToken", func(w *world) {
			out := need(w.ecr.GetAuthorizationToken(w.ctx(), &ecr.GetAuthorizationTokenInput{}))
			data := out.AuthorizationData[0]
			token, err := base64.StdEncoding.DecodeString(aws.ToString(data.AuthorizationToken))
			if err != nil || !strings.HasPrefix(string(token), "AWS:") || aws.ToString(data.ProxyEndpoint) != "https://"+account+".dkr.ecr."+w.config.Region+".amazonaws.com" {
				w.Errorf("endpoint %s, %v", aws.ToString(data.ProxyEndpoint), err)
			}
		}},
		{"CreateRepository", func(w *world) {
			out := need(w.ecr.CreateRepository(w.ctx(), &ecr.CreateRepositoryInput{RepositoryName: name, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}}))
			w.has(out, "Repository.RepositoryArn", "Repository.RepositoryUri", "Repository.CreatedAt", "Repository.RegistryId")
			_, err := w.ecr.CreateRepository(w.ctx(), &ecr.CreateRepositoryInput{RepositoryName: name})
			w.refused("RepositoryAlreadyExistsException", err)
			_, err = w.ecr.CreateRepository(w.ctx(), &ecr.CreateRepositoryInput{RepositoryName: aws.String("Live")})
			w.refused("InvalidParameterException", err)
		}},
		{"DescribeRepositories", func(w *world) {
			out := need(w.ecr.DescribeRepositories(w.ctx(), &ecr.DescribeRepositoriesInput{RepositoryNames: []string{*name}}))
			if len(out.Repositories) != 1 || out.Repositories[0].ImageTagMutability != types.ImageTagMutabilityMutable {
				w.Errorf("%+v", out.Repositories)
			}
			_, err := w.ecr.DescribeRepositories(w.ctx(), &ecr.DescribeRepositoriesInput{RepositoryNames: []string{"none"}})
			w.refused("RepositoryNotFoundException", err)
		}},
		{"ListTagsForResource", func(w *world) { tags(w, "team=a ") }},
		{"TagResource", func(w *world) {
			need(w.ecr.TagResource(w.ctx(), &ecr.TagResourceInput{ResourceArn: arn(w), Tags: []types.Tag{{Key: aws.String("x"), Value: aws.String("y")}}}))
			tags(w, "team=a x=y ")
		}},
		{"UntagResource", func(w *world) {
			need(w.ecr.UntagResource(w.ctx(), &ecr.UntagResourceInput{ResourceArn: arn(w), TagKeys: []string{"team"}}))
			tags(w, "x=y ")
		}},
		{"PutImage", func(w *world) {
			out := need(w.ecr.PutImage(w.ctx(), &ecr.PutImageInput{RepositoryName: name, ImageManifest: aws.String(emptyIndex), ImageTag: aws.String("v1")}))
			w.notes["digest"] = aws.ToString(out.Image.ImageId.ImageDigest)
			_, err := w.ecr.PutImage(w.ctx(), &ecr.PutImageInput{RepositoryName: name, ImageManifest: aws.String(emptyIndex), ImageTag: aws.String("v1")})
			w.refused("ImageAlreadyExistsException", err)
		}},
		{"ListImages", func(w *world) {
			out := need(w.ecr.ListImages(w.ctx(), &ecr.ListImagesInput{RepositoryName: name}))
			if len(out.ImageIds) != 1 || aws.ToString(out.ImageIds[0].ImageTag) != "v1" {
				w.Errorf("%d images", len(out.ImageIds))
			}
		}},
		{"DescribeImages", func(w *world) {
			out := need(w.ecr.DescribeImages(w.ctx(), &ecr.DescribeImagesInput{RepositoryName: name}))
			if len(out.ImageDetails) != 1 || fmt.Sprint(out.ImageDetails[0].ImageTags) != "[v1]" || aws.ToString(out.ImageDetails[0].ImageDigest) != w.notes["digest"] {
				w.Errorf("%+v", out.ImageDetails)
			}
			_, err := w.ecr.DescribeImages(w.ctx(), &ecr.DescribeImagesInput{RepositoryName: name, ImageIds: []types.ImageIdentifier{{ImageTag: aws.String("none")}}})
			w.refused("ImageNotFoundException", err)
		}},
		{"BatchGetImage", func(w *world) {
			out := need(w.ecr.BatchGetImage(w.ctx(), &ecr.BatchGetImageInput{RepositoryName: name, ImageIds: []types.ImageIdentifier{{ImageTag: aws.String("v1")}, {ImageTag: aws.String("none")}}}))
			if len(out.Images) != 1 || aws.ToString(out.Images[0].ImageManifest) != emptyIndex || len(out.Failures) != 1 || out.Failures[0].FailureCode != types.ImageFailureCodeImageNotFound {
				w.Errorf("%+v", out)
			}
		}},
		{"PutImageTagMutability", func(w *world) {
			need(w.ecr.PutImageTagMutability(w.ctx(), &ecr.PutImageTagMutabilityInput{RepositoryName: name, ImageTagMutability: types.ImageTagMutabilityImmutable}))
			_, err := w.ecr.PutImage(w.ctx(), &ecr.PutImageInput{RepositoryName: name, ImageManifest: aws.String(emptyIndex + " "), ImageTag: aws.String("v1")})
			w.refused("ImageTagAlreadyExistsException", err)
			_, err = w.ecr.DeleteRepository(w.ctx(), &ecr.DeleteRepositoryInput{RepositoryName: name})
			w.refused("RepositoryNotEmptyException", err)
		}},
		{"GetRepositoryPolicy", func(w *world) {
			_, err := w.ecr.GetRepositoryPolicy(w.ctx(), &ecr.GetRepositoryPolicyInput{RepositoryName: name})
			w.refused("RepositoryPolicyNotFoundException", err)
		}},
		{"DeleteRepositoryPolicy", func(w *world) {
			_, err := w.ecr.DeleteRepositoryPolicy(w.ctx(), &ecr.DeleteRepositoryPolicyInput{RepositoryName: name})
			w.refused("RepositoryPolicyNotFoundException", err)
		}},
		{"GetLifecyclePolicy", func(w *world) {
			_, err := w.ecr.GetLifecyclePolicy(w.ctx(), &ecr.GetLifecyclePolicyInput{RepositoryName: name})
			w.refused("LifecyclePolicyNotFoundException", err)
		}},
		{"DeleteLifecyclePolicy", func(w *world) {
			_, err := w.ecr.DeleteLifecyclePolicy(w.ctx(), &ecr.DeleteLifecyclePolicyInput{RepositoryName: name})
			w.refused("LifecyclePolicyNotFoundException", err)
		}},
		{"BatchDeleteImage", func(w *world) {
			out := need(w.ecr.BatchDeleteImage(w.ctx(), &ecr.BatchDeleteImageInput{RepositoryName: name, ImageIds: []types.ImageIdentifier{{ImageTag: aws.String("v1")}}}))
			if len(out.ImageIds) != 1 || len(out.Failures) != 0 {
				w.Errorf("%+v", out)
			}
		}},
		{"DeleteRepository", func(w *world) {
			need(w.ecr.DeleteRepository(w.ctx(), &ecr.DeleteRepositoryInput{RepositoryName: name}))
			_, err := w.ecr.DeleteRepository(w.ctx(), &ecr.DeleteRepositoryInput{RepositoryName: name})
			w.refused("RepositoryNotFoundException", err)
		}},
	}
}
