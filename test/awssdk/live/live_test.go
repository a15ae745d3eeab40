// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"testing"

	"muster.dev/muster/internal/aws/awsactions"
)

// tables are the tests of each service's actions, in the order in which they run.
func tables() []struct {
	service string
	actions []action
} {
	return []struct {
		service string
		actions []action
	}{
		{"eks", slices.Concat(eksActions(), fargateActions(), updateActions(), emptyListActions(), goneActions())},
		{"ec2", ec2Actions()},
		{"ssm", ssmActions()},
		{"kms", kmsActions()},
		{"logs", logsActions()},
		{"ecr", ecrActions()},
		{"elasticfilesystem", efsActions()},
		{"sqs", sqsActions()},
		{"events", eventsActions()},
		{"pricing", pricingActions()},
		{"fis", fisActions()},
		{"tagging", taggingActions()},
		{"elasticloadbalancing", classicBalancerActions()},
		{"elasticloadbalancingv2", balancerActions()},
		{"cloudformation", stackActions()},
		{"autoscaling", slices.Concat(autoscalingActions(), ownGroupActions())},
		{"arc-zonal-shift", zonalShiftActions()}, // before what leaves an update of the cluster behind
		{"eks", slices.Concat(addonActions(), authorityActions())},
	}
}

// TestActions calls every action by its service's client.
func TestActions(t *testing.T) {
	w := newWorld(t)
	for _, table := range tables() {
		t.Run(table.service, func(t *testing.T) {
			service := *w
			service.T = t
			service.run(table.service, table.actions)
		})
	}
}

// TestEveryActionIsTested fails if an action that the account answers has no test here. IAM and STS have theirs in
// internal/iam.
func TestEveryActionIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, table := range tables() {
		for _, a := range table.actions {
			tested[table.service+":"+a.name] = true
		}
	}
	for _, name := range answered() {
		if !tested[name] {
			t.Errorf("%s is answered, and has no test: write its entry", name)
		}
		delete(tested, name)
	}
	for name := range tested {
		t.Errorf("%s has a test, and nothing answers it", name)
	}
}

// answered are the actions that the account answers, as SERVICE:ACTION.
func answered() []string {
	var names []string
	list := awsactions.NewList()
	for _, s := range awsactions.Services() {
		if slices.Contains([]string{"iam", "sts", "eks-auth"}, s.Name) { // the client of eks-auth is not to be had
			continue
		}
		for _, a := range s.Actions {
			if a.Mark != awsactions.Refused && !list.NotYet(s.Name, a.Name) {
				names = append(names, s.Name+":"+a.Name)
			}
		}
	}
	return names
}
