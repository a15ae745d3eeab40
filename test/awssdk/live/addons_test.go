// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// addonActions are tests of the actions of add-ons, in the cluster that is there, which has no nodes.
func addonActions() []action {
	cluster, proxy := aws.String(first), aws.String("kube-proxy")
	return []action{
		{"DescribeAddonVersions", func(w *world) {
			var names []string
			for pages := eks.NewDescribeAddonVersionsPaginator(w.eks, &eks.DescribeAddonVersionsInput{MaxResults: aws.Int32(2)}); pages.HasMorePages(); {
				out := need(pages.NextPage(w.ctx()))
				w.has(
					out, "Addons[].AddonName", "Addons[].Type", "Addons[].Publisher", "Addons[].Owner", "Addons[].DefaultNamespace", "Addons[].AddonVersions[].AddonVersion",
					"Addons[].AddonVersions[].Architecture", "Addons[].AddonVersions[].Compatibilities[].ClusterVersion", "Addons[].AddonVersions[].Compatibilities[].PlatformVersions",
				)
				for _, info := range out.Addons {
					names = append(names, *info.AddonName)
				}
			}
			if got := strings.Join(names, " "); got != "coredns eks-pod-identity-agent karpenter kube-proxy metrics-server muster-explain snapshot-controller traefik vpc-cni" {
				w.Errorf("add-ons %s", got)
			}
			out := need(w.eks.DescribeAddonVersions(w.ctx(), &eks.DescribeAddonVersionsInput{AddonName: aws.String("coredns")}))
			w.notes["coredns"] = *out.Addons[0].AddonVersions[0].AddonVersion
		}},
		{"DescribeAddonConfiguration", func(w *world) {
			out := need(w.eks.DescribeAddonConfiguration(w.ctx(), &eks.DescribeAddonConfigurationInput{AddonName: aws.String("coredns"), AddonVersion: aws.String(w.notes["coredns"])}))
			if w.has(out, "AddonName", "AddonVersion", "ConfigurationSchema"); !strings.Contains(*out.ConfigurationSchema, "replicaCount") {
				w.Error(*out.ConfigurationSchema)
			}
		}},
		{"CreateAddon", func(w *world) {
			out := need(w.eks.CreateAddon(w.ctx(), &eks.CreateAddonInput{ClusterName: cluster, AddonName: proxy, Tags: map[string]string{"team": "a"}}))
			w.has(out, "Addon.AddonName", "Addon.Status")
			_, err := w.eks.CreateAddon(w.ctx(), &eks.CreateAddonInput{ClusterName: cluster, AddonName: proxy})
			w.refused("ResourceInUseException", err)
			_, err = w.eks.CreateAddon(w.ctx(), &eks.CreateAddonInput{ClusterName: cluster, AddonName: aws.String("coredns"), ConfigurationValues: aws.String(`{"replicas":1}`)})
			w.refused("InvalidParameterException", err)
		}},
		{"DescribeAddon", func(w *world) {
			must(eks.NewAddonActiveWaiter(w.eks, func(o *eks.AddonActiveWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).
				Wait(w.ctx(), &eks.DescribeAddonInput{ClusterName: cluster, AddonName: proxy}, patience))
			out := need(w.eks.DescribeAddon(w.ctx(), &eks.DescribeAddonInput{ClusterName: cluster, AddonName: proxy}))
			w.has(
				out, "Addon.AddonName", "Addon.AddonArn", "Addon.ClusterName", "Addon.AddonVersion", "Addon.CreatedAt", "Addon.ModifiedAt",
				"Addon.NamespaceConfig.Namespace", "Addon.Tags", "Addon.Publisher", "Addon.Owner",
			)
			_, err := w.eks.DescribeAddon(w.ctx(), &eks.DescribeAddonInput{ClusterName: cluster, AddonName: aws.String("none")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"ListAddons", func(w *world) {
			if out := need(w.eks.ListAddons(w.ctx(), &eks.ListAddonsInput{ClusterName: cluster})); !slices.Equal(out.Addons, []string{"kube-proxy"}) {
				w.Errorf("add-ons %v", out.Addons)
			}
		}},
		{"UpdateAddon", func(w *world) {
			out := need(w.eks.UpdateAddon(w.ctx(), &eks.UpdateAddonInput{ClusterName: cluster, AddonName: proxy, ResolveConflicts: types.ResolveConflictsPreserve}))
			w.has(out, "Update.Id", "Update.Status", "Update.Type")
			w.eventually(patience, func() error {
				shown := need(w.eks.DescribeUpdate(w.ctx(), &eks.DescribeUpdateInput{Name: cluster, AddonName: proxy, UpdateId: out.Update.Id}))
				if shown.Update.Status != types.UpdateStatusSuccessful {
					return fmt.Errorf("the update is %s: %+v", shown.Update.Status, shown.Update.Errors)
				}
				return nil
			})
		}},
		{"DeleteAddon", func(w *world) {
			w.has(need(w.eks.DeleteAddon(w.ctx(), &eks.DeleteAddonInput{ClusterName: cluster, AddonName: proxy})), "Addon.Status")
			must(eks.NewAddonDeletedWaiter(w.eks, func(o *eks.AddonDeletedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second }).
				Wait(w.ctx(), &eks.DescribeAddonInput{ClusterName: cluster, AddonName: proxy}, patience))
		}},
	}
}
