// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"strings"
	"testing"
)

// IAM is asked about a launch in each subnet that the group gets, and of each market, whoever names the subnets.
func TestLaunchesAreAskedAbout(t *testing.T) {
	const subnet = "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:subnet/"
	mixed := "&MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.LaunchTemplateId=" + templateID + "&MixedInstancesPolicy.LaunchTemplate.Overrides.member.1.InstanceType=m5.large" +
		"&MixedInstancesPolicy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity="
	group := "CreateAutoScalingGroup&AutoScalingGroupName=new&MinSize=0&MaxSize=1&VPCZoneIdentifier="
	for name, c := range map[string]struct {
		request string
		asks    []string
		not     string
	}{
		"each subnet":         {group + subnetA + "," + subnetB + "&LaunchTemplate.LaunchTemplateName=web", []string{subnet + subnetA, subnet + subnetB}, "=spot"},
		"with white space":    {group + subnetA + ", " + subnetB + "&LaunchTemplate.LaunchTemplateName=web", []string{subnet + subnetB, "autoscaling:vpczoneidentifiers=" + subnetA + "+" + subnetB}, "subnet/ "},
		"spot, too":           {group + subnetA + mixed + "50", []string{"ec2:instancemarkettype=on-demand", "ec2:instancemarkettype=spot"}, "subnet/ "},
		"spot alone":          {group + subnetA + mixed + "0", []string{"ec2:instancemarkettype=spot"}, "=on-demand"},
		"another template":    {"UpdateAutoScalingGroup&AutoScalingGroupName=own&LaunchTemplate.LaunchTemplateName=web", []string{subnet + subnetA, subnet + subnetB}, "=spot"},
		"a refresh's":         {"StartInstanceRefresh&AutoScalingGroupName=own&DesiredConfiguration.LaunchTemplate.LaunchTemplateName=web", []string{subnet + subnetA, subnet + subnetB}, "=spot"},
		"one without version": {group + subnetA + strings.Replace(mixed, "m5.large", "m5.large&MixedInstancesPolicy.LaunchTemplate.Overrides.member.1.LaunchTemplateSpecification.LaunchTemplateId="+templateID, 1) + "100&MixedInstancesPolicy.LaunchTemplate.Overrides.member.2.InstanceType=t3.small&MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version=1", []string{"autoscaling:launchtemplateversionspecified=false"}, "versionspecified=true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ownWorld(t)
			w.gate.Asked = nil
			w.ask(c.request, 200)
			asked := strings.Join(w.gate.Asked, "\n")
			for _, want := range c.asks {
				if !strings.Contains(asked, want) {
					t.Errorf("IAM is not asked %s:\n%s", want, asked)
				}
			}
			if strings.Contains(asked, c.not) {
				t.Errorf("IAM is asked %s:\n%s", c.not, asked)
			}
		})
	}
}

// A request with too many subnets or overrides is refused before IAM is asked about each launch.
func TestLaunchesAreBounded(t *testing.T) {
	w := ownWorld(t)
	w.gate.Denies = true
	w.ask("UpdateAutoScalingGroup&AutoScalingGroupName=own&LaunchTemplate.LaunchTemplateName=web&VPCZoneIdentifier="+strings.Repeat(subnetA+",", 65), 400, "at most 64")
	request := "UpdateAutoScalingGroup&AutoScalingGroupName=own&MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.LaunchTemplateName=web"
	for i := range 41 {
		request += fmt.Sprintf("&MixedInstancesPolicy.LaunchTemplate.Overrides.member.%d.InstanceType=t3.small", i+1)
	}
	w.ask(request, 400, "at most 40")
}
