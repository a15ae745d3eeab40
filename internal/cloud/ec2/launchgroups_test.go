// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// IAM is asked about each security group that instances get: about a group that the request gives by its name, too, and about
// the VPC's default group where the request gives none.
func TestLaunchesAreAskedAboutWithTheirGroups(t *testing.T) {
	const mine = "sg-0123456789abcdef0"
	for request, group := range map[string]string{
		run + "&MaxCount=1&SubnetId=" + subnetA + "&SecurityGroup.1=mine":                   mine,
		run + "&MaxCount=1&SubnetId=" + subnetA + "&SecurityGroupId.1=" + mine:              mine,
		run + "&MaxCount=1&SubnetId=" + subnetA:                                             v1alpha1.DefaultSecurityGroupID(vpcA),
		run + "&MaxCount=1":                                                                 v1alpha1.DefaultSecurityGroupID(vpcB),
		fleetRequest(1, "on-demand", "t3.small"):                                            mine,
		strings.Replace(fleetRequest(1, "on-demand", "t3.small"), "$Default", "$Latest", 1): v1alpha1.DefaultSecurityGroupID(vpcA),
	} {
		w := runWorld(t)
		w.ask(request, 200)
		w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:security-group/" + group)
		if n := strings.Count(strings.Join(w.gate.Asked, "\n"), "ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:security-group/"); n != 1 {
			t.Errorf("%s: IAM is asked about %d groups:\n%s", request, n, strings.Join(w.gate.Asked, "\n"))
		}
	}
	w := runWorld(t)
	w.gate.Denies = true
	w.ask(run+"&MaxCount=1&SubnetId="+subnetA+"&SecurityGroup.1=nobody", 403, "UnauthorizedOperation") // and is not told that there is none
	w.wasAsked("ec2:RunInstances")
	w.gate.Denies = false
	w.ask(run+"&MaxCount=1&SubnetId="+subnetA+"&SecurityGroup.1=nobody", 400, "InvalidGroup.NotFound")
	w.wasAsked("ec2:RunInstances arn:aws:ec2:eu-west-1:000000000000:security-group/*")
}
