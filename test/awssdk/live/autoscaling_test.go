// SPDX-License-Identifier: Apache-2.0

package live

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
)

func autoscalingActions() []action {
	return []action{
		{"DescribeAutoScalingGroups", func(w *world) {
			out := need(w.autoscaling.DescribeAutoScalingGroups(w.ctx(), &autoscaling.DescribeAutoScalingGroupsInput{}))
			w.has(
				out, "AutoScalingGroups[].AutoScalingGroupName", "AutoScalingGroups[].AutoScalingGroupARN", "AutoScalingGroups[].MinSize", "AutoScalingGroups[].MaxSize",
				"AutoScalingGroups[].DesiredCapacity", "AutoScalingGroups[].AvailabilityZones", "AutoScalingGroups[].Tags[].Key",
			)
			w.notes["asg"] = *out.AutoScalingGroups[0].AutoScalingGroupName
		}},
		{"DescribeScalingActivities", func(w *world) {
			need(w.autoscaling.DescribeScalingActivities(w.ctx(), &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(w.notes["asg"])}))
		}},
		{"SetDesiredCapacity", func(w *world) {
			need(w.autoscaling.SetDesiredCapacity(w.ctx(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String(w.notes["asg"]), DesiredCapacity: aws.Int32(1)}))
		}},
	}
}
