// SPDX-License-Identifier: Apache-2.0

package live

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
)

// classicBalancerActions are the actions about Classic Load Balancers. The account has no load balancers of this kind.
func classicBalancerActions() []action {
	name := []string{"aab0c1d2e3f405162738495a6b7c8d9e"}
	return []action{
		{"DescribeLoadBalancers", func(w *world) {
			pages := elasticloadbalancing.NewDescribeLoadBalancersPaginator(w.classic, &elasticloadbalancing.DescribeLoadBalancersInput{PageSize: aws.Int32(400)})
			for pages.HasMorePages() {
				if got := need(pages.NextPage(w.ctx())).LoadBalancerDescriptions; len(got) > 0 {
					w.Errorf("%v", got)
				}
			}
			_, err := w.classic.DescribeLoadBalancers(w.ctx(), &elasticloadbalancing.DescribeLoadBalancersInput{LoadBalancerNames: name})
			w.refused("LoadBalancerNotFound", err)
			_, err = w.classic.CreateLoadBalancer(w.ctx(), &elasticloadbalancing.CreateLoadBalancerInput{LoadBalancerName: &name[0], Listeners: nil})
			if err == nil {
				w.Error("a Classic Load Balancer was made")
			}
		}},
		{"DescribeTags", func(w *world) {
			_, err := w.classic.DescribeTags(w.ctx(), &elasticloadbalancing.DescribeTagsInput{LoadBalancerNames: name})
			w.refused("LoadBalancerNotFound", err)
		}},
	}
}

// balancerActions are the actions about application and network load balancers. The account has no load balancers of these kinds.
func balancerActions() []action {
	arn := func(w *world, kind string) string {
		return "arn:aws:elasticloadbalancing:" + w.config.Region + ":" + account + ":" + kind + "/live/0123456789abcdef"
	}
	return []action{
		{"DescribeLoadBalancers", func(w *world) {
			if got := need(w.balancers.DescribeLoadBalancers(w.ctx(), &elasticloadbalancingv2.DescribeLoadBalancersInput{})).LoadBalancers; len(got) > 0 {
				w.Errorf("%v", got)
			}
			_, err := w.balancers.DescribeLoadBalancers(w.ctx(), &elasticloadbalancingv2.DescribeLoadBalancersInput{Names: []string{"live"}})
			w.refused("LoadBalancerNotFound", err)
			_, err = w.balancers.DeleteLoadBalancer(w.ctx(), &elasticloadbalancingv2.DeleteLoadBalancerInput{LoadBalancerArn: aws.String(arn(w, "loadbalancer/net"))})
			w.refused("UnsupportedOperation", err)
		}},
		{"DescribeTargetGroups", func(w *world) {
			if got := need(w.balancers.DescribeTargetGroups(w.ctx(), &elasticloadbalancingv2.DescribeTargetGroupsInput{})).TargetGroups; len(got) > 0 {
				w.Errorf("%v", got)
			}
			_, err := w.balancers.DescribeTargetGroups(w.ctx(), &elasticloadbalancingv2.DescribeTargetGroupsInput{Names: []string{"live"}})
			w.refused("TargetGroupNotFound", err)
		}},
		{"DescribeTags", func(w *world) {
			_, err := w.balancers.DescribeTags(w.ctx(), &elasticloadbalancingv2.DescribeTagsInput{ResourceArns: []string{arn(w, "targetgroup")}})
			w.refused("TargetGroupNotFound", err)
		}},
	}
}
