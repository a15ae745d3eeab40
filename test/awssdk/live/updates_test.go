// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
)

// updateActions are tests of changes of the cluster that these tests made, and of its insights.
func updateActions() []action {
	cluster, group := aws.String(madeup), aws.String("web")
	return []action{
		{"UpdateClusterVersion", func(w *world) {
			is := *need(w.eks.DescribeCluster(w.ctx(), &eks.DescribeClusterInput{Name: cluster})).Cluster.Version
			for _, version := range []string{is, "1.99"} { // there is one version
				_, err := w.eks.UpdateClusterVersion(w.ctx(), &eks.UpdateClusterVersionInput{Name: cluster, Version: aws.String(version)})
				w.refused("InvalidParameterException", err)
			}
		}},
		{"AssociateEncryptionConfig", func(w *world) {
			key := need(w.kms.CreateKey(w.ctx(), &kms.CreateKeyInput{})).KeyMetadata.Arn
			config := []types.EncryptionConfig{{Provider: &types.Provider{KeyArn: key}, Resources: []string{"secrets"}}}
			out := need(w.eks.AssociateEncryptionConfig(w.ctx(), &eks.AssociateEncryptionConfigInput{ClusterName: cluster, EncryptionConfig: config}))
			w.updated(*out.Update.Id, "")
			shown := need(w.eks.DescribeCluster(w.ctx(), &eks.DescribeClusterInput{Name: cluster}))
			if w.has(shown, "Cluster.EncryptionConfig[].Provider.KeyArn"); *shown.Cluster.EncryptionConfig[0].Provider.KeyArn != *key {
				w.Errorf("%+v", shown.Cluster.EncryptionConfig)
			}
			_, err := w.eks.AssociateEncryptionConfig(w.ctx(), &eks.AssociateEncryptionConfigInput{ClusterName: cluster, EncryptionConfig: config})
			w.refused("InvalidRequestException", err)
			need(w.kms.ScheduleKeyDeletion(w.ctx(), &kms.ScheduleKeyDeletionInput{KeyId: key, PendingWindowInDays: aws.Int32(7)}))
		}},
		{"UpdateNodegroupVersion", func(w *world) {
			out := need(w.eks.UpdateNodegroupVersion(w.ctx(), &eks.UpdateNodegroupVersionInput{ClusterName: cluster, NodegroupName: group, Force: true}))
			w.has(out, "Update.Id", "Update.Type")
			w.updated(*out.Update.Id, *group)
			w.notes["over"] = *out.Update.Id
			_, err := w.eks.UpdateNodegroupVersion(w.ctx(), &eks.UpdateNodegroupVersionInput{ClusterName: cluster, NodegroupName: group, Version: aws.String("1.20")})
			w.refused("InvalidParameterException", err)
		}},
		{"CancelUpdate", func(w *world) { // TestEKSOperationsHaveEffects cancels an update in time
			_, err := w.eks.CancelUpdate(w.ctx(), &eks.CancelUpdateInput{Name: cluster, UpdateId: aws.String(w.notes["over"])})
			w.refused("InvalidRequestException", err)
			_, err = w.eks.CancelUpdate(w.ctx(), &eks.CancelUpdateInput{Name: cluster, UpdateId: aws.String("none")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"ListInsights", func(w *world) {
			out := need(w.eks.ListInsights(w.ctx(), &eks.ListInsightsInput{ClusterName: cluster, Filter: &types.InsightsFilter{Categories: []types.Category{types.CategoryUpgradeReadiness}}}))
			w.has(out, "Insights[].Id", "Insights[].Name", "Insights[].Category", "Insights[].KubernetesVersion", "Insights[].LastRefreshTime", "Insights[].Description",
				"Insights[].InsightStatus.Status", "Insights[].InsightStatus.Reason")
			w.notes["insight"] = *out.Insights[0].Id
		}},
		{"DescribeInsight", func(w *world) {
			out := need(w.eks.DescribeInsight(w.ctx(), &eks.DescribeInsightInput{ClusterName: cluster, Id: aws.String(w.notes["insight"])}))
			w.has(out, "Insight.Id", "Insight.Name", "Insight.Category", "Insight.KubernetesVersion", "Insight.InsightStatus.Status", "Insight.Recommendation")
			_, err := w.eks.DescribeInsight(w.ctx(), &eks.DescribeInsightInput{ClusterName: cluster, Id: aws.String("none")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"StartInsightsRefresh", func(w *world) {
			_, err := w.eks.DescribeInsightsRefresh(w.ctx(), &eks.DescribeInsightsRefreshInput{ClusterName: cluster})
			w.refused("ResourceNotFoundException", err)
			w.has(need(w.eks.StartInsightsRefresh(w.ctx(), &eks.StartInsightsRefreshInput{ClusterName: cluster})), "Status", "Message")
		}},
		{"DescribeInsightsRefresh", func(w *world) {
			out := need(w.eks.DescribeInsightsRefresh(w.ctx(), &eks.DescribeInsightsRefreshInput{ClusterName: cluster}))
			if w.has(out, "Status", "Message", "StartedAt", "EndedAt"); time.Since(*out.StartedAt) > time.Minute {
				w.Errorf("it was refreshed at %v", out.StartedAt)
			}
		}},
	}
}

// emptyListActions are tests of the lists of what Muster has none of.
func emptyListActions() []action {
	cluster := aws.String(madeup)
	none := func(w *world, list any) {
		if got := fmt.Sprint(list); got != "[]" {
			w.Errorf("listed %s", got)
		}
	}
	return []action{
		{"ListCapabilities", func(w *world) {
			none(w, need(w.eks.ListCapabilities(w.ctx(), &eks.ListCapabilitiesInput{ClusterName: cluster})).Capabilities)
		}},
		{"ListEksAnywhereSubscriptions", func(w *world) {
			none(w, need(w.eks.ListEksAnywhereSubscriptions(w.ctx(), &eks.ListEksAnywhereSubscriptionsInput{})).Subscriptions)
		}},
		{"ListIdentityProviderConfigs", func(w *world) {
			none(w, need(w.eks.ListIdentityProviderConfigs(w.ctx(), &eks.ListIdentityProviderConfigsInput{ClusterName: cluster})).IdentityProviderConfigs)
		}},
	}
}
