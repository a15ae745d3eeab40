// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/node/render"
)

// TestNodeRepair has a node group of EKS repair its machines, a minute after their nodes have become unhealthy. Machines
// are replaced whose kubelet or containerd is killed and does not come back, or which have no network, while the service is
// killed, too; and by an override a machine is rebooted, and gets well. Healthy nodes have the conditions of EKS's monitor, and no node writes
// those of another.
//
//story:about machine/repair machine/nodegroup node/agent node/nodehealth node/healthprobe cloud/eks/nodegroups
func TestNodeRepair(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	subnet, err := w.aws(w.admin, "ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	if err != nil {
		t.Fatal(err)
	}
	w.mustAWS(nil, "eks", "create-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "web", "--node-role", "arn:aws:iam::"+iamAccount+":role/muster-node",
		"--subnets", strings.TrimSpace(subnet), "--scaling-config", "minSize=0,maxSize=4,desiredSize=2", "--labels", "pool=web", "--node-repair-config", repairConfig("Replace"))
	w.eksBecomes(nodegroupPath("muster", "web"), "ACTIVE")
	r := &repaired{iam: w}
	r.settled()
	t.Run("healthy nodes say so", func(t *testing.T) { r.in(t).healthy() })
	t.Run("a kubelet that is killed", func(t *testing.T) {
		r.in(t).harmed("NodeStatusUnknown", func(r *repaired, machine string) { r.breaks(machine, "kubelet", kubeletConfig) })
	})
	t.Run("a containerd that is killed", func(t *testing.T) {
		r.in(t).harmed("KubeletNotReady", func(r *repaired, machine string) { r.breaks(machine, "containerd", render.PathContainerdConfig) })
	})
	t.Run("a drill without network", func(t *testing.T) {
		r.in(t).harmed("NodeStatusUnknown", func(r *repaired, machine string) { r.muster("drill", machine, "no-network", "--for", "30m") })
	})
	t.Run("a reboot", func(t *testing.T) { r.in(t).reboots() })
}

// kubeletConfig is the configuration of the kubelet on a machine.
const kubeletConfig = "/etc/kubernetes/kubelet/config.json"

// repairConfig is a nodeRepairConfig that acts a minute after a kubelet or a containerd is gone.
func repairConfig(action string) string {
	config := map[string]any{"enabled": true, "maxParallelNodesRepairedCount": 1}
	var overrides []map[string]any
	for _, o := range [][2]string{{"Ready", "NodeStatusUnknown"}, {"Ready", "KubeletNotReady"}, {"ContainerRuntimeReady", "ContainerdRepeatedRestart"}} {
		overrides = append(overrides, map[string]any{"nodeMonitoringCondition": o[0], "nodeUnhealthyReason": o[1], "minRepairWaitTimeMins": 1, "repairAction": action})
	}
	config["nodeRepairConfigOverrides"] = overrides
	raw, _ := json.Marshal(config) // strings and numbers
	return string(raw)
}

// repaired is a group of two machines.
type repaired struct {
	*iam
	nodes map[string]string // of the machines
}

func (r *repaired) in(t *testing.T) *repaired {
	t.Helper()
	return &repaired{r.step(t), r.nodes}
}

// settled waits until the group has two machines that are nodes, and knows them.
func (r *repaired) settled() {
	r.t.Helper()
	r.eventually("both machines are Ready", func() error {
		out, err := r.kubectl(managementContext, "get", "machines", "-l", "muster.dev/nodegroup=web", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.status.nodeName}{"\n"}{end}`)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if err == nil && (len(lines) != 2 || strings.Count(out, " Ready ") != 2) {
			err = fmt.Errorf("machines: %s", out)
		}
		if err != nil {
			return err
		}
		r.nodes = map[string]string{}
		for _, line := range lines {
			fields := strings.Fields(line)
			r.nodes[fields[0]] = fields[2]
		}
		return nil
	})
}

// conditions are what the monitor of a node says, in order, as TYPE=STATUS/REASON.
func (r *repaired) conditions(node string) string {
	out, _ := r.kubectl("get", "node", node, "-o", `jsonpath={range .status.conditions[*]}{.type}={.status}/{.reason} {end}`)
	var said []string
	for c := range strings.FieldsSeq(out) {
		if strings.HasPrefix(c, "ContainerRuntimeReady=") || strings.HasPrefix(c, "KernelReady=") || strings.HasPrefix(c, "NetworkingReady=") || strings.HasPrefix(c, "StorageReady=") || strings.HasPrefix(c, "Accelerated") {
			said = append(said, c)
		}
	}
	return strings.Join(said, " ")
}

// healthy waits until the monitors have said that all is well, and checks that they do not write each other's Nodes.
func (r *repaired) healthy() {
	const well = "ContainerRuntimeReady=True/ContainerRuntimeIsReady KernelReady=True/KernelIsReady NetworkingReady=True/NetworkingIsReady StorageReady=True/DiskIsReady"
	for machine, node := range r.nodes {
		r.eventually("the monitor of "+node+" says that all is well", func() error {
			if said := r.conditions(node); said != well {
				return fmt.Errorf("%s says %q", machine, said)
			}
			return nil
		})
		for other, others := range r.nodes {
			if other == machine {
				continue
			}
			body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, others) // by PUT: a node may not read the status of another first
			out, talk, err := r.try("exec", machine, "--", "sh", "-c", fmt.Sprintf(`echo '%s' >/tmp/node.json && kubectl --kubeconfig %s replace --raw /api/v1/nodes/%s/status -f /tmp/node.json`, body, render.PathKubeconfig, others))
			if err == nil || !strings.Contains(talk, "is not allowed to modify node") {
				r.t.Errorf("%s writes the Node of %s: %s %s", machine, other, out, talk)
			}
		}
	}
	if repair := r.mustKubectl(managementContext, "-n", "muster", "get", "nodegroup", "web", "-o", "jsonpath={.status.repair.unhealthy} {.status.repair.heldReason}"); strings.TrimSpace(repair) != "0" {
		r.t.Errorf("the group says %q", repair)
	}
}

// one returns one machine of the two, and its node.
func (r *repaired) one() (machine, node string) {
	for machine, node = range r.nodes {
		break
	}
	return machine, node
}

// breaks kills a program of a machine, and has it not come back.
func (r *repaired) breaks(machine, program, config string) {
	r.t.Helper()
	if out, talk, err := r.try("exec", machine, "--", "sh", "-c", "cp "+config+" "+config+".good && echo broken >"+config); err != nil {
		r.t.Fatalf("%s %s: %v", out, talk, err)
	}
	pid, runs := r.inMachineOf(r.machines()[machine], program)
	if !runs {
		r.t.Fatalf("no %s runs on %s", program, machine)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

// harmed has a machine be harmed, and waits until the group has another machine in its place, and says why. The service is
// killed meanwhile, twice.
func (r *repaired) harmed(reason string, harm func(r *repaired, machine string)) {
	r.settled()
	machine, node := r.one()
	harm(r, machine)
	var said time.Time
	r.eventually("the group says that "+node+" is unhealthy", func() error {
		out, err := r.kubectl(managementContext, "-n", "muster", "get", "nodegroup", "web", "-o", `jsonpath={range .status.repair.machines[*]}{.machine} {.condition} {.reason} {.action} {.since}{"\n"}{end}`)
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) == 5 && fields[0] == machine && fields[1] == "Ready" && fields[2] == reason && fields[3] == "Replace" {
				said, err = time.Parse(time.RFC3339, fields[4])
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("it says %q", out))
	})
	r.kill("serve")
	r.eventually(machine+" is replaced", func() error {
		out, err := r.kubectl(managementContext, "get", "machine", machine, "-o", "jsonpath={.metadata.deletionTimestamp}")
		if err == nil && out == "" {
			err = errors.New("it is there")
		}
		if err != nil && strings.Contains(err.Error(), "NotFound") {
			err = nil
		}
		return err
	})
	if took := time.Since(said); took < time.Minute {
		r.t.Errorf("it was replaced %v after its node became unhealthy", took)
	} else {
		r.t.Logf("%s is replaced %v after its node became unhealthy", machine, took.Round(time.Second))
	}
	r.kill("serve")
	r.settled()
	if _, there := r.nodes[machine]; there {
		r.t.Errorf("%s is still there", machine)
	}
	events := r.mustKubectl(managementContext, "get", "events", "-A", "-o", `jsonpath={range .items[*]}{.reason} {.note}{.message}{"\n"}{end}`)
	if !anyLine(events, "Repairing", machine, reason) || !anyLine(events, "NodeUnhealthy", machine, reason) {
		r.t.Errorf("the events are\n%s", events)
	}
	cause, err := r.aws(r.admin, "autoscaling", "describe-scaling-activities", "--query", "Activities[].Cause", "--output", "text")
	if err != nil || !strings.Contains(cause, "user health-check") {
		r.t.Errorf("activities: %s, %v", cause, err)
	}
}

// reboots has a machine rebooted whose kubelet was stopped, which the reboot mends.
func (r *repaired) reboots() {
	r.settled()
	r.mustAWS(nil, "eks", "update-nodegroup-config", "--cluster-name", "muster", "--nodegroup-name", "web", "--node-repair-config", repairConfig("Reboot"))
	r.eventually("the group reboots", func() error {
		out, err := r.kubectl(managementContext, "-n", "muster", "get", "nodegroup", "web", "-o", "jsonpath={.spec.eks.nodeRepairConfig.nodeRepairConfigOverrides[0].repairAction}")
		return errors.Join(err, is(out, "Reboot"))
	})
	machine, node := r.one()
	pid, runs := r.inMachineOf(r.machines()[machine], "kubelet")
	if !runs {
		r.t.Fatalf("no kubelet runs on %s", machine)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		r.t.Fatal(err)
	}
	r.eventually(machine+" is rebooted", func() error {
		out, err := r.kubectl(managementContext, "get", "machine", machine, "-o", "jsonpath={.spec.reboots} {.status.reboots}")
		return errors.Join(err, is(out, "1 1"))
	})
	r.kill("serve")
	r.eventually("its node is Ready and takes pods", func() error {
		out, err := r.kubectl("get", "node", node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.spec.unschedulable}`)
		return errors.Join(err, is(strings.TrimSpace(out), "True"))
	})
	r.settled()
	if _, there := r.nodes[machine]; !there {
		r.t.Errorf("%s is gone", machine)
	}
}
