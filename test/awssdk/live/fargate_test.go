// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// fargateActions are those about Fargate profiles, of a cluster that is there.
func fargateActions() []action {
	cluster, name := aws.String(madeup), aws.String("live-jobs")
	return []action{
		{"CreateFargateProfile", func(w *world) {
			pods := need(w.iam.CreateRole(w.ctx(), &iam.CreateRoleInput{RoleName: aws.String("live-fargate"), AssumeRolePolicyDocument: aws.String(strings.Replace(trust, "eks.", "eks-fargate-pods.", 1))})).Role
			in := &eks.CreateFargateProfileInput{ClusterName: cluster, FargateProfileName: name, PodExecutionRoleArn: pods.Arn, Selectors: []types.FargateProfileSelector{{Labels: map[string]string{"a": "b"}}}}
			_, err := w.eks.CreateFargateProfile(w.ctx(), in)
			w.refused("InvalidParameterException", err)
			in.Selectors[0].Namespace = aws.String("jobs")
			w.has(need(w.eks.CreateFargateProfile(w.ctx(), in)), "FargateProfile.FargateProfileName")
			must(eks.NewFargateProfileActiveWaiter(w.eks).Wait(w.ctx(), &eks.DescribeFargateProfileInput{ClusterName: cluster, FargateProfileName: name}, 5*time.Minute))
		}},
		{"ListFargateProfiles", func(w *world) {
			w.has(need(w.eks.ListFargateProfiles(w.ctx(), &eks.ListFargateProfilesInput{ClusterName: cluster})), "FargateProfileNames[]")
		}},
		{"DescribeFargateProfile", func(w *world) {
			w.has(
				need(w.eks.DescribeFargateProfile(w.ctx(), &eks.DescribeFargateProfileInput{ClusterName: cluster, FargateProfileName: name})),
				"FargateProfile.FargateProfileName", "FargateProfile.FargateProfileArn", "FargateProfile.ClusterName", "FargateProfile.PodExecutionRoleArn", "FargateProfile.Subnets",
				"FargateProfile.Selectors", "FargateProfile.Status", "FargateProfile.CreatedAt",
			)
		}},
		{"DeleteFargateProfile", func(w *world) {
			need(w.eks.DeleteFargateProfile(w.ctx(), &eks.DeleteFargateProfileInput{ClusterName: cluster, FargateProfileName: name}))
			must(eks.NewFargateProfileDeletedWaiter(w.eks).Wait(w.ctx(), &eks.DescribeFargateProfileInput{ClusterName: cluster, FargateProfileName: name}, 5*time.Minute))
			need(w.iam.DeleteRole(w.ctx(), &iam.DeleteRoleInput{RoleName: aws.String("live-fargate")}))
		}},
	}
}
