// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/loginkey"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/node/sshserver"
	"muster.dev/muster/internal/plane/readiness"
)

// errQueued says that a machine waits until others have booted.
var errQueued = errors.New("it waits to boot: as many machines are booting as this host can boot at once")

// launch boots an instance, for the first time or once more, or hands a running one another token. It does nothing yet,
// and says for how long, if the instance keeps dying, or, with errQueued, if the host boots as many as it can.
func (r *machines) launch(
	ctx context.Context, provider machine.Provider, m *v1alpha1.Machine, was machine.Instance, t token.Token,
) (machine.Instance, time.Duration, error) {
	allowed, err := r.hostRoot(m.Spec.ClusterName)
	if err != nil {
		return was, 0, err
	}
	if m.Spec.Isolation == v1alpha1.IsolationNone && !allowed {
		return was, 0, hostroot.Refused{Cluster: m.Spec.ClusterName}
	}
	died := was.State == machine.Stopped && power.Was(m) == ""
	if died {
		if wait := r.relaunch.wait(m.Name, r.Now()); wait > 0 {
			return was, wait, nil
		}
	}
	boots := m.Spec.Provider.Can(v1alpha1.RunPods) && was.State != machine.Running
	if boots && !r.Boots.begin(m.Name, r.Now()) {
		return was, bootAgain, errQueued
	}
	revealed := ""
	if !t.IsZero() {
		revealed = t.Reveal()
	}
	started := r.Now()
	var instance machine.Instance
	instance, err = func() (machine.Instance, error) {
		data := m.Spec.UserData
		if m.Spec.Rendered() {
			rendered, err := r.UserData(m, revealed)
			if err != nil {
				return was, fmt.Errorf("rendering the user data: %w", err)
			}
			data = rendered
		}
		request, err := launchRequest(ctx, r, m, was, data, allowed)
		if err != nil {
			return was, err
		}
		instance, err := provider.Launch(ctx, request)
		if err != nil {
			return was, fmt.Errorf("launching the instance: %w", err)
		}
		return instance, nil
	}()
	if err != nil {
		r.Boots.end(m.Name)
		err = redact(err, t)
		if errors.Is(err, machine.ErrDiskReserve) {
			r.stoppedForReserve(m, err)
			return was, 0, err
		}
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "LaunchFailed", "Launch", "%s", readiness.Shorten(err.Error()))
		return was, 0, err
	}
	if instance.LaunchTime.IsZero() {
		instance.LaunchTime = started
	}
	recordLaunch(r, m, was, instance)
	return instance, 0, nil
}

// launchRequest is what a provider is asked for to have a machine run with some user data.
func launchRequest(ctx context.Context, r *machines, m *v1alpha1.Machine, was machine.Instance, data []byte, hostRoot bool) (request machine.LaunchRequest, err error) {
	request = machine.LaunchRequest{
		ID: m.Name, UserData: data, Cluster: m.Spec.ClusterName, SubnetID: subnetOf(m, r.Network.SubnetIDs()),
		Type: m.Spec.Type(), DiskSize: int(m.Spec.Disk()), HopLimit: int(m.Spec.Metadata().HTTPPutResponseHopLimit), SecurityGroups: r.securityGroups(m),
		ImageID: m.Spec.ImageID, Scaled: m.Spec.NodeGroup != "" || m.Spec.ScalingGroup != nil, Spot: m.Spec.MarketType == v1alpha1.MarketSpot, Lifecycle: lifecycleOf(m), Pods: r.pods(m, data),
		OwnIDs:   nodegroupspec.Isolation(m.Spec.Provider, m.Spec.Isolation) == v1alpha1.IsolationUserNamespace,
		HostRoot: hostRoot, SimulatePods: m.Spec.SimulatePods,
		PodSubnetIDs: r.Network.PodSubnetIDs(), NamePrefix: namePrefix(m),
	}
	if request.Key, err = loginkey.Of(ctx, r.managementLive, m, was); err != nil {
		return request, err
	}
	request.Avoid, err = named(ctx, r.cluster, m, was)
	return request, err
}

// recordLaunch records the Events of a launch that succeeded.
func recordLaunch(r *machines, m *v1alpha1.Machine, was, instance machine.Instance) {
	kind, reason, note := launchNote(m, was, instance)
	r.recorder.Eventf(m, nil, kind, reason, "Launch", "%s", note)
	if instance.NoSSHServer {
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, loginkey.NoServer, "Launch", "nobody can log in by key pair %s: %s", m.Spec.KeyName, sshserver.Missing)
	}
}

// namePrefix begins the private DNS name of a machine: fargate- on Fargate, as on EKS.
func namePrefix(m *v1alpha1.Machine) string {
	if m.Spec.Fargate == nil {
		return ""
	}
	return v1alpha1.FargateNodePrefix
}

// subnetOf is the subnet of a machine: the first one of the cluster if no group made the machine.
func subnetOf(m *v1alpha1.Machine, clusters []string) string {
	if m.Spec.SubnetID == "" && len(clusters) > 0 {
		return clusters[0]
	}
	return string(m.Spec.SubnetID)
}

// named are the addresses whose names Nodes of other machines have. A Node may stay for a while when its machine is gone, as
// Karpenter's does by its finalizer. A kubelet of the same name would take that Node for its own, and register no other one
// when it goes.
func named(ctx context.Context, cluster client.Reader, m *v1alpha1.Machine, was machine.Instance) (addresses []netip.Addr, err error) {
	if was.ID != "" || !m.Spec.Provider.Can(v1alpha1.RunPods) { // it has an address, or no kubelet
		return nil, nil
	}
	var nodes corev1.NodeList
	if err := cluster.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes, whose names the new machine must not get: %w", err)
	}
	for i := range nodes.Items {
		if address, ok := machine.AddressOfName(nodes.Items[i].Name); ok && machineOf(&nodes.Items[i]) != m.Name {
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}

// launchNote is the Event of a launch that succeeded.
func launchNote(m *v1alpha1.Machine, was, instance machine.Instance) (kind, reason, note string) {
	down := power.Was(m)
	switch {
	case was.State == machine.Running && m.Status.BootstrapTokenID != "":
		return corev1.EventTypeNormal, "TokenRenewed", "the bootstrap token had expired before the machine joined; it has another"
	case was.State == machine.Stopped && down == v1alpha1.ReasonRebooting:
		return corev1.EventTypeNormal, "Rebooted", "the instance was rebooted"
	case was.State == machine.Stopped && down != "":
		return corev1.EventTypeNormal, "Started", "the instance was started"
	case was.State == machine.Stopped:
		return corev1.EventTypeWarning, "Relaunched", "the instance had stopped and was booted again"
	}
	return corev1.EventTypeNormal, "Launched", "the instance was launched as " + instance.PrivateDNSName
}

// reasonReserve says that a machine was stopped because its disk took room that the host needs itself.
const reasonReserve = "DiskReserve"

// reserveAgain is how often it is tried whether the host has room for a machine that was stopped for its reserve.
const reserveAgain = 5 * time.Second

// stoppedForReserve says once that the machine was stopped because it took room of the host's disk.
func (r *machines) stoppedForReserve(m *v1alpha1.Machine, err error) {
	r.relaunch.forget(m.Name) // it did not die by itself, and waits for nothing else
	if was := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); was == nil || was.Reason != reasonReserve {
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, reasonReserve, "Launch", "%s", readiness.Shorten(err.Error()))
	}
}

// securityGroups are those that a machine boots in; what its object says later is put in force while it runs.
func (r *machines) securityGroups(m *v1alpha1.Machine) []string {
	switch {
	case len(m.Spec.SecurityGroupIDs) > 0:
		return m.Spec.SecurityGroupIDs
	case m.Spec.Rendered() && r.Network.SecurityGroupID != "":
		return []string{r.Network.SecurityGroupID}
	}
	return []string{v1alpha1.DefaultSecurityGroupID(r.Network.VPCID)}
}

// adopt copies what the provider assigned.
func adopt(m *v1alpha1.Machine, instance machine.Instance) {
	m.Status.ProviderID = v1alpha1.ProviderID(instance.Zone, m.Name)
	m.Status.NodeName = instance.PrivateDNSName
	m.Status.Isolation = isolationOf(m.Spec.Provider, instance)
	m.Status.DiskSize = int32(instance.DiskSize) //nolint:gosec // G115: it is at most MaxDisk
	m.Status.Addresses = nil
	if instance.PrivateIP.IsValid() {
		m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: instance.PrivateIP.String()})
	}
	if instance.PrivateDNSName != "" {
		m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: instance.PrivateDNSName})
	}
	if instance.PodRange.IsValid() {
		m.Status.PodCIDR = instance.PodRange.String()
	}
	if !instance.LaunchTime.IsZero() {
		m.Status.Join = joinlog.Merge(m.Status.Join, v1alpha1.JoinRecord{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(instance.LaunchTime)})
	}
}

// isolationOf is what separates an instance from the host as it is; simulated ones run nothing and have none.
func isolationOf(provider v1alpha1.Provider, instance machine.Instance) v1alpha1.Isolation {
	switch {
	case !provider.Can(v1alpha1.RunPods):
		return ""
	case instance.OwnIDs:
		return v1alpha1.IsolationUserNamespace
	}
	return v1alpha1.IsolationNone
}

// redacted is an error whose text does not show a token, whatever put it there. The wrapped error is still available.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

func redact(err error, t token.Token) error {
	text := err.Error()
	if t.IsZero() || !strings.Contains(text, t.Reveal()) {
		return err
	}
	return &redacted{text: strings.ReplaceAll(text, t.Reveal(), t.String()), err: err}
}

const (
	calmAfter = time.Minute // an instance that lived this long starts with a clean slate
	slowest   = 30 * time.Second
)

// pacer keeps an instance that dies at once from being booted without pause: the first time at once, then after 1 s, 2
// s, 4 s.
type pacer struct {
	mu   sync.Mutex
	past map[string]launches
}

type launches struct {
	last  time.Time
	count int
}

func newPacer() *pacer { return &pacer{past: map[string]launches{}} }

// wait returns how long to wait before the next launch; 0 means launch now, and counts as a launch.
func (p *pacer) wait(id string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.past[id]
	if before.count == 0 || now.Sub(before.last) > calmAfter {
		p.past[id] = launches{last: now, count: 1}
		return 0
	}
	pause := min(time.Second<<min(before.count-1, 10), slowest)
	if left := pause - now.Sub(before.last); left > 0 {
		return left
	}
	p.past[id] = launches{last: now, count: before.count + 1}
	return 0
}

func (p *pacer) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.past, id)
}
