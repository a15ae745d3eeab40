// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// warmGroup is a node group with a warm pool.
const warmGroup = `apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: %[1]s}
spec: {name: %[1]s, provider: %[2]s, bootstrap: %[3]s, scalingConfig: {desiredSize: 1, maxSize: 3}, warmPool: {maxGroupPreparedCapacity: 2, poolState: %[4]s, reuseOnScaleIn: true}}
`

// TestWarmPools has node groups whose machines wait in a warm pool: local ones that run or are stopped, which join by
// their role or by a token, and simulated ones. Each group takes its machine, which was no node before, has a pod there,
// and returns it when it scales in, with the service killed at each step. Auto Scaling's actions say the same.
//
//story:about machine/nodegroup machine/plan machine/power machine/machine/local machine/machine/simulated node/agent node/imds cloud/autoscaling cloud/eks/nodegroups
func TestWarmPools(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	w := newIAM(t, i)
	for _, refused := range []struct{ pool, says string }{
		{"{minSize: 4}", "a warm pool is not larger than its node group"},
		{"{poolState: Hibernated}", "a local machine cannot hibernate"},
	} {
		document := strings.Replace(fmt.Sprintf(warmGroup, "refused", "local", "Role", "Running"), "{maxGroupPreparedCapacity: 2, poolState: Running, reuseOnScaleIn: true}", refused.pool, 1)
		if out, err := i.kubectl("--context=muster-management", "apply", "-f", i.manifest(document)); err == nil || !strings.Contains(out+err.Error(), refused.says) {
			t.Errorf("%s: %s, %v", refused.pool, out, err)
		}
	}
	for _, group := range []struct{ name, provider, bootstrap, state string }{
		{"running", "local", "Role", "Running"},
		{"stopped", "local", "Token", "Stopped"},
		{"simulated", "simulated", "Token", "Running"},
	} {
		t.Run(group.name, func(t *testing.T) {
			p := &warmPool{iam: w.step(t), name: group.name, state: "Warmed:" + group.state}
			p.apply(fmt.Sprintf(warmGroup, group.name, group.provider, group.bootstrap, group.state), "--context=muster-management")
			p.run()
		})
	}
}

// warmPool is a node group with a warm pool of one machine.
type warmPool struct {
	*iam
	name, state string
}

// has waits until the machines of the group are in these phases, sorted, and returns their ids by phase.
func (p *warmPool) has(phases ...string) map[string]string {
	p.t.Helper()
	ids := map[string]string{}
	took := p.eventually(fmt.Sprintf("the machines of %s are %v", p.name, phases), func() error {
		out, err := p.kubectl("get", "--context=muster-management", "machines", "-l", "muster.dev/nodegroup="+p.name, "-o", `jsonpath={range .items[*]}{.status.phase} {.metadata.name}{"\n"}{end}`)
		if err != nil {
			return err
		}
		var are []string
		clear(ids)
		for line := range strings.Lines(out) {
			phase, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			are, ids[phase] = append(are, phase), id
		}
		if slices.Sort(are); !slices.Equal(are, phases) {
			return fmt.Errorf("machines: %s", out)
		}
		return nil
	})
	p.t.Logf("%s: %v after %v", p.name, phases, took.Round(100*time.Millisecond))
	return ids
}

// nodes are the Nodes of the group.
func (p *warmPool) nodes() string {
	p.t.Helper()
	return p.mustKubectl("get", "nodes", "-l", "eks.amazonaws.com/nodegroup="+p.name, "-o", "jsonpath={.items[*].spec.providerID}")
}

func (p *warmPool) scale(size int) {
	p.t.Helper()
	p.mustKubectl("--context=muster-management", "-n", "muster", "scale", "nodegroups.muster.dev/"+p.name, fmt.Sprintf("--replicas=%d", size))
	p.kill("serve")
}

func (p *warmPool) run() {
	before := p.has("Ready", p.state)
	if nodes := p.nodes(); strings.Contains(nodes, before[p.state]) || !strings.HasSuffix(nodes, before["Ready"]) {
		p.t.Errorf("a machine that waits in the warm pool is a node: %s", nodes)
	}
	out, _ := p.muster("get", "nodegroups", p.name)
	if want := "1/1 " + strings.TrimPrefix(p.state, "Warmed:"); !strings.Contains(out, "WARM") || !strings.Contains(out, want) {
		p.t.Errorf("muster get nodegroups does not say %s:\n%s", want, out)
	}
	p.says(before[p.state])

	began := time.Now()
	p.scale(2)
	taken := p.eventually("both machines are Ready", func() error {
		out, err := p.kubectl("get", "nodes", "-l", "eks.amazonaws.com/nodegroup="+p.name, "-o", `jsonpath={range .items[*]}{.spec.providerID} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		if err == nil && (strings.Count(out, " True") != 2 || !strings.Contains(out, before[p.state]+" True")) {
			err = fmt.Errorf("nodes: %s", out)
		}
		return err
	})
	p.t.Logf("%s: Ready %v after it was asked for, %v of that with kubectl and the service killed", p.name, time.Since(began).Round(100*time.Millisecond), taken.Round(100*time.Millisecond))
	p.has("Ready", "Ready")

	p.scale(1)
	after := p.has("Ready", p.state)
	if after["Ready"] == after[p.state] || after[p.state] != before[p.state] && after[p.state] != before["Ready"] {
		p.t.Errorf("the machines were %v, and are %v", before, after)
	}
	if nodes := p.nodes(); strings.Contains(nodes, after[p.state]) {
		p.t.Errorf("a machine that returned to the warm pool is a node: %s", nodes)
	}
	p.scale(2)
	p.has("Ready", "Ready")
	p.mustKubectl("--context=muster-management", "-n", "muster", "delete", "nodegroups.muster.dev", p.name)
}

// says checks what Auto Scaling's and EKS's actions say of the machine in the pool.
func (p *warmPool) says(id string) {
	p.t.Helper()
	name, err := p.aws(p.admin, "autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[?starts_with(AutoScalingGroupName, `eks-"+p.name+"-`)].AutoScalingGroupName", "--output", "text")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, is := range []struct {
		want string
		ask  []string
	}{
		{id + "\t" + p.state, []string{"autoscaling", "describe-warm-pool", "--auto-scaling-group-name", strings.TrimSpace(name), "--query", "Instances[].[InstanceId,LifecycleState]"}},
		{p.state, []string{"autoscaling", "describe-auto-scaling-instances", "--instance-ids", id, "--query", "AutoScalingInstances[].LifecycleState"}},
		{"1\t1", []string{"autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", strings.TrimSpace(name), "--query", "AutoScalingGroups[].[length(Instances),WarmPoolSize]"}},
		{strings.ToUpper(strings.TrimPrefix(p.state, "Warmed:")) + "\tTrue", []string{"eks", "describe-nodegroup", "--cluster-name", "muster", "--nodegroup-name", p.name, "--query", "nodegroup.warmPoolConfig.[poolState,reuseOnScaleIn]"}},
	} {
		out, err := p.aws(p.admin, append(is.ask, "--output", "text")...)
		if err != nil || strings.TrimSpace(out) != is.want {
			p.t.Errorf("%v: %q, %v, want %q", is.ask[:2], out, err, is.want)
		}
	}
}
