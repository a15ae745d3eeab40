// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"time"
)

// suspend suspends or resumes the process AZRebalance of the node group's Auto Scaling group.
func (z *shiftedZone) suspend(action string) {
	z.t.Helper()
	group, err := z.aws(z.admin, "autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[0].AutoScalingGroupName", "--output", "text")
	if err != nil {
		z.t.Fatal(err)
	}
	z.mustAWS(nil, "autoscaling", action, "--auto-scaling-group-name", strings.TrimSpace(group), "--scaling-processes", "AZRebalance")
}

// zonesOfMachines are how many machines of the group each zone has, without those that end, and how many of them were launched to
// make zones even.
func (z *shiftedZone) zonesOfMachines() (zones map[string]int, spare int) {
	z.t.Helper()
	zones = map[string]int{}
	out := z.mustKubectl(managementContext, "get", "machines", "-o", `jsonpath={range .items[*]}{.metadata.deletionTimestamp},{.status.providerID},{.metadata.annotations.muster\.dev/spare}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) != 3 || fields[0] != "" {
			continue
		}
		if fields[2] != "" {
			spare++
		}
		if parts := strings.Split(fields[1], "/"); len(parts) == 5 { // aws:///ZONE/ID
			zones[parts[3]]++
		}
	}
	return zones, spare
}

// rebalanced has the group rebalanced, which has one machine in us-east-1a and three in another of three zones: one more is
// launched, and when it is Ready another ends. The service is killed when each is seen.
func (z *shiftedZone) rebalanced() {
	z.t.Helper()
	const size = 6
	if zones, _ := z.zonesOfMachines(); zones["us-east-1a"] != 1 || len(zones) != 3 || max(zones["us-east-1b"], zones["us-east-1c"]) != 3 {
		z.t.Fatalf("the zones have %v", zones)
	}
	began := time.Now()
	z.suspend("resume-processes")
	z.eventually("a machine is launched in the emptier zone", func() error {
		if zones, spare := z.zonesOfMachines(); zones["us-east-1a"] != 2 || spare != 1 {
			return fmt.Errorf("the zones have %v, %d spare", zones, spare)
		}
		return nil
	})
	z.kill("serve")
	even := func() error {
		zones, _ := z.zonesOfMachines()
		sum, most := 0, 0
		for _, n := range zones {
			sum, most = sum+n, max(most, n)
		}
		if sum < size {
			z.t.Fatalf("the zones have %v", zones)
		}
		if sum != size || most != size/3 {
			return fmt.Errorf("the zones have %v", zones)
		}
		return nil
	}
	z.eventually("the zones are even", even)
	z.kill("serve")
	z.eventually("nothing is left of it", func() error {
		_, spare := z.zonesOfMachines()
		if nodes := strings.Fields(z.mustKubectl("get", "nodes", "-o", "name")); spare != 0 || len(nodes) != size {
			return fmt.Errorf("%d spare, nodes %q", spare, nodes)
		}
		return even()
	})
	z.t.Logf("the group was rebalanced after %v", time.Since(began).Round(100*time.Millisecond))
	causes, err := z.aws(z.admin, "autoscaling", "describe-scaling-activities", "--query", "Activities[].Cause", "--output", "json")
	for _, cause := range []string{"availability zones us-east-1a us-east-1b us-east-1c had 1 ", "instances were launched to balance instances in zones us-east-1a with other zones"} {
		if err != nil || strings.Count(causes, cause) != 1 {
			z.t.Errorf("%d activities have the cause %q: %s, %v", strings.Count(causes, cause), cause, causes, err)
		}
	}
}
