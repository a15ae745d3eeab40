// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// keptGroup is a node group that keeps machines which are stopped. Their disks have keptDisk GiB.
const keptGroup = `apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: %[1]s}
spec: {name: %[1]s, provider: %[2]s, bootstrap: %[3]s, scalingConfig: {desiredSize: 1}, labels: {kept: %[1]s}, autoScaling: {suspendedProcesses: [ReplaceUnhealthy]}, eks: {diskSize: 6}}
`

// keptDisk is the size of the disks of machines of a keptGroup, in GiB.
const keptDisk = 6

// keeper is a StatefulSet whose pod keeps files on its machine.
const keeper = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: keeper}
spec:
  serviceName: keeper
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {kept: role}
      containers:
      - name: workload
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        args: [serve]
        env: [{name: PATH, value: /usr/bin}]
        securityContext: {runAsUser: 0}
        volumeMounts:
        - {name: usr, mountPath: /usr, readOnly: true}
        - {name: lib, mountPath: /lib, readOnly: true}
        - {name: lib64, mountPath: /lib64, readOnly: true}
        - {name: work, mountPath: /work}
        - {name: host, mountPath: /host}
      volumes:
      - {name: usr, hostPath: {path: /usr}}
      - {name: lib, hostPath: {path: /lib}}
      - {name: lib64, hostPath: {path: /lib64}}
      - {name: work, emptyDir: {}}
      - {name: host, hostPath: {path: /var/lib/keeper, type: DirectoryOrCreate}}
`

// TestStopStartReboot stops, starts and reboots machines by EC2's actions and by kubectl, with the service killed in the
// middle: a local one under a pod, which finds its files again; one that joined by a token, whose certificate runs out or
// whose Node is deleted meanwhile; one whose disk is lost; a simulated one; and one whose group replaces it.
//
//story:about machine/power machine/nodegroup machine/machine/local machine/machine/simulated cloud/ec2 cloud/autoscaling
func TestStopStartReboot(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	i.apply(fmt.Sprintf(keptGroup, "role", "local", "Role")+"---\n"+fmt.Sprintf(keptGroup, "token", "local", "Token")+"---\n"+fmt.Sprintf(keptGroup, "simulated", "simulated", "Token"), "--context=muster-management")
	for _, step := range []struct {
		name, group string
		run         func(*powered)
	}{
		{"under a pod", "role", (*powered).underAPod},
		{"its certificate runs out, or its Node goes", "token", (*powered).bySleep},
		{"a simulated machine", "simulated", (*powered).silent},
		{"its disk is lost", "role", (*powered).withoutDisk},
		{"its group replaces it", "role", (*powered).replaced},
	} {
		t.Run(step.name, func(t *testing.T) {
			p := &powered{iam: w.step(t)}
			p.find(step.group)
			step.run(p)
		})
	}
}

// powered is the machine of a node group.
type powered struct {
	*iam
	id, node, address string
}

// find waits until the one machine of a group is a node, and knows it.
func (p *powered) find(group string) {
	p.t.Helper()
	p.eventually("the machine of "+group+" is Ready", func() error {
		out, err := p.kubectl("get", "--context=muster-management", "machines", "-l", "muster.dev/nodegroup="+group, "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.status.nodeName} {.status.addresses[0].address}{"\n"}{end}`)
		fields := strings.Fields(out)
		if err == nil && (len(fields) != 4 || fields[1] != "Ready") {
			err = fmt.Errorf("machines: %s", out)
		}
		if err == nil {
			p.id, p.node, p.address = fields[0], fields[2], fields[3]
		}
		return err
	})
}

// is waits until EC2 says that the machine is in a state.
func (p *powered) is(state string) {
	p.t.Helper()
	took := p.eventually("it is "+state, func() error {
		is, err := p.aws(p.admin, "ec2", "describe-instances", "--instance-ids", p.id, "--query", "Reservations[0].Instances[0].State.Name", "--output", "text")
		if err == nil && strings.TrimSpace(is) != state {
			err = fmt.Errorf("it is %s", is)
		}
		return err
	})
	p.t.Logf("%s is %s after %v", p.id, state, took.Round(100*time.Millisecond))
}

// stop stops the machine by EC2, and kills the service at once.
func (p *powered) stop() {
	p.t.Helper()
	p.mustAWS(nil, "ec2", "stop-instances", "--instance-ids", p.id)
	p.kill("serve")
	p.is("stopped")
	if first, runs := p.machines()[p.id]; runs {
		p.t.Errorf("its first process %d runs", first)
	}
	p.isTheSame()
}

// start starts the machine by EC2, kills the service at once, and waits until it is the node again that it was.
func (p *powered) start() {
	p.t.Helper()
	began := time.Now()
	p.mustAWS(nil, "ec2", "start-instances", "--instance-ids", p.id)
	p.kill("serve")
	p.is("running")
	p.isBack(began)
}

// isBack waits until the machine's node is Ready by a report that is younger than a moment.
func (p *powered) isBack(since time.Time) {
	p.t.Helper()
	took := p.eventually(p.node+" is Ready", func() error {
		said, err := p.kubectl("get", "node", p.node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastHeartbeatTime} {.spec.providerID}`)
		fields := strings.Fields(said)
		if err == nil && (len(fields) != 3 || fields[0] != "True" || !strings.HasSuffix(fields[2], "/"+p.id)) {
			err = fmt.Errorf("it is %s", said)
		}
		if err != nil {
			return err
		}
		if at, err := time.Parse(time.RFC3339, fields[1]); err != nil || at.Before(since.Truncate(time.Second)) {
			return fmt.Errorf("it was heard of at %s last (%w)", fields[1], err)
		}
		return nil
	})
	p.t.Logf("%s is Ready after %v", p.node, took.Round(100*time.Millisecond))
	p.isTheSame()
}

// isTheSame checks that the machine has the name, the address and the size of the disk that it had.
func (p *powered) isTheSame() {
	p.t.Helper()
	want := fmt.Sprintf("%s %s %d", p.node, p.address, keptDisk)
	if got := p.mustKubectl("get", "--context=muster-management", "machine", p.id, "-o", `jsonpath={.status.nodeName} {.status.addresses[0].address} {.status.diskSize}`); got != want {
		p.t.Errorf("it is %s, and was %s", got, want)
	}
	if room := p.mustKubectl("get", "node", p.node, "--ignore-not-found", "-o", `jsonpath={.status.capacity.ephemeral-storage}`); room != "" {
		if size := resource.MustParse(room); size.Value() > keptDisk<<30 || size.Value() < keptDisk<<30*9/10 {
			p.t.Errorf("its Node has %s of ephemeral storage, and its disk %d GiB", room, keptDisk)
		}
	}
}

func (p *powered) inPod(script string) (string, error) {
	return p.kubectl("exec", "keeper-0", "--", "/usr/bin/sh", "-c", script)
}

// underAPod stops a machine under a pod, which is the same one afterwards and has its files.
func (p *powered) underAPod() {
	p.apply(keeper)
	p.eventually("the pod runs", func() error {
		_, err := p.inPod("echo work >/work/kept && echo host >/host/kept && echo lost >/dev/shm/lost")
		return err
	})
	uid := p.mustKubectl("get", "pod", "keeper-0", "-o", "jsonpath={.metadata.uid}")
	node := p.mustKubectl("get", "node", p.node, "-o", "jsonpath={.metadata.uid}")
	boot := func() string {
		out, _ := p.muster("exec", p.id, "--", "cat", "/proc/sys/kernel/random/boot_id")
		return out
	}
	same := func(before string) {
		p.t.Helper()
		p.eventually("the pod is back with its files", func() error {
			out, err := p.inPod("cat /work/kept /host/kept; ls /dev/shm")
			if err == nil && out != "work\nhost" {
				err = fmt.Errorf("it has %q", out)
			}
			return err
		})
		if now := p.mustKubectl("get", "pod", "keeper-0", "-o", "jsonpath={.metadata.uid}"); now != uid {
			p.t.Errorf("the pod is %s, and was %s", now, uid)
		}
		if now := p.mustKubectl("get", "node", p.node, "-o", "jsonpath={.metadata.uid}"); now != node {
			p.t.Errorf("the Node is %s, and was %s", now, node)
		}
		if boot() == before {
			p.t.Error("it has not booted again")
		}
	}
	died := func() int {
		return strings.Count(p.mustKubectl("get", "--context=muster-management", "events", "-A", "--field-selector=involvedObject.name="+p.id, "-o", "jsonpath={.items[*].reason}"), "Relaunched")
	}
	deaths, before := died(), boot()
	p.stop()
	if _, err := p.aws(p.admin, "ec2", "reboot-instances", "--instance-ids", p.id); err == nil || !strings.Contains(err.Error(), "(IncorrectInstanceState)") {
		p.t.Errorf("a stopped machine is rebooted: %v", err)
	}
	p.start()
	same(before)

	before = boot()
	began := time.Now()
	p.mustAWS(nil, "ec2", "reboot-instances", "--instance-ids", p.id)
	p.kill("serve")
	p.eventually("it has rebooted", func() error {
		out, err := p.kubectl("get", "--context=muster-management", "machine", p.id, "-o", `jsonpath={.spec.reboots} {.status.reboots} {.status.conditions[?(@.type=="Running")].status}`)
		if err == nil && out != "1 1 True" {
			err = fmt.Errorf("got %s", out)
		}
		return err
	})
	p.isBack(began)
	same(before)
	if n := died(); n != deaths {
		p.t.Errorf("it died %d times, and %d times before", n, deaths)
	}
	p.mustKubectl("delete", "statefulset", "keeper")
}

// bySleep has the certificate of a machine that joined by a token run out while it is stopped, and then its Node deleted.
func (p *powered) bySleep() {
	pki := filepath.Join(p.dir.Machine(p.id), "root/var/lib/kubelet/pki")
	old := p.expired(p.node, x509.ExtKeyUsageClientAuth, p.node)
	name := "kubelet-client-2026-01-01-00-00-00.pem"
	if err := os.WriteFile(filepath.Join(pki, name), []byte(old), 0o600); err != nil {
		p.t.Fatal(err)
	}
	link := filepath.Join(pki, "kubelet-client-current.pem")
	if err := errors.Join(os.Symlink("/var/lib/kubelet/pki/"+name, link+".new"), os.Rename(link+".new", link)); err != nil {
		p.t.Fatal(err)
	}
	p.stop()
	p.recordExpired(p.node)
	p.start()
	p.tokensAreGone()

	p.stop()
	p.mustKubectl("delete", "node", p.node)
	p.start()
	p.tokensAreGone()
}

// tokensAreGone waits until no bootstrap token of the machine is left.
func (p *powered) tokensAreGone() {
	p.t.Helper()
	p.eventually("its token is gone", func() error {
		out, err := p.kubectl("-n", "kube-system", "get", "secrets", "-l", "muster.dev/machine="+p.id, "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
}

// silent stops a simulated machine by kubectl, and starts it again.
func (p *powered) silent() {
	lease := func() string {
		return p.mustKubectl("-n", "kube-node-lease", "get", "lease", p.node, "-o", "jsonpath={.spec.renewTime}")
	}
	patch := func(state string) {
		p.mustKubectl("patch", "--context=muster-management", "machine", p.id, "--type=merge", "-p", `{"spec":{"powerState":"`+state+`"}}`)
	}
	patch("Stopped")
	p.is("stopped")
	<-time.After(time.Second)
	last := lease()
	<-time.After(12 * time.Second) // longer than a kubelet waits between two heartbeats
	if now := lease(); now != last {
		p.t.Errorf("a stopped machine was heard of at %s, after %s", now, last)
	}
	patch("Running")
	p.is("running")
	p.eventually("it is heard of", func() error {
		if now := lease(); now == last {
			return fmt.Errorf("last at %s", now)
		}
		return nil
	})
	p.tokensAreGone()
}

// withoutDisk has the disk of a machine lost while it is stopped.
func (p *powered) withoutDisk() {
	p.stop()
	if err := os.Remove(p.dir.MachineDisk(p.id)); err != nil {
		p.t.Fatal(err)
	}
	p.start()
}

// replaced has a group resume what replaces stopped machines.
func (p *powered) replaced() {
	name, err := p.aws(p.admin, "autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[?starts_with(AutoScalingGroupName, `eks-role-`)].AutoScalingGroupName", "--output", "text")
	if err != nil {
		p.t.Fatal(err)
	}
	name, before := strings.TrimSpace(name), p.id
	p.stop()
	if health, err := p.aws(p.admin, "autoscaling", "describe-auto-scaling-instances", "--instance-ids", p.id, "--query", "AutoScalingInstances[0].HealthStatus", "--output", "text"); err != nil || strings.TrimSpace(health) != "UNHEALTHY" {
		p.t.Errorf("a stopped machine is %s: %v", health, err)
	}
	p.mustAWS(nil, "autoscaling", "resume-processes", "--auto-scaling-group-name", name, "--scaling-processes", "ReplaceUnhealthy")
	if p.find("role"); p.id == before {
		p.t.Errorf("%s is not replaced", before)
	}
	cause, err := p.aws(p.admin, "autoscaling", "describe-scaling-activities", "--auto-scaling-group-name", name, "--query", "Activities[].Cause", "--output", "text")
	if err != nil || !strings.Contains(cause, "EC2 health check indicating it has been terminated or stopped") {
		p.t.Errorf("activities: %s, %v", cause, err)
	}
}
