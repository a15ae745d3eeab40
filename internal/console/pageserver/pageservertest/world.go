// SPDX-License-Identifier: Apache-2.0

package pageservertest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/decision"
)

// Noon is the moment of all installations here.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// The machines of World that are not Ready.
const (
	Refused  = "i-0aaaaaaaaaaaaaaaa"
	Joining  = "i-0bbbbbbbbbbbbbbbb"
	Leaving  = "i-0cccccccccccccccc"
	Stopped  = "i-0dddddddddddddddd"
	FirstOne = "i-00000000000000001" // it is Ready
)

const (
	home    = "home"
	staging = "staging"
)

func before(age time.Duration) metav1.Time { return metav1.NewTime(Noon.Add(-age)) }

func condition(status metav1.ConditionStatus, reason, message string, age time.Duration) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: before(age)}
}

func cluster(name, version string) v1alpha1.Cluster {
	c := v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: name, CreationTimestamp: before(48 * time.Hour)}}
	c.Spec.Name, c.Spec.Version = name, version
	c.Status = v1alpha1.ClusterStatus{Version: version, Endpoint: "https://127.93.14.205:6443", Conditions: []metav1.Condition{condition(metav1.ConditionTrue, "Up", "", time.Hour)}}
	return c
}

func group(cluster, name string, desired, ready int32) v1alpha1.NodeGroup {
	g := v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster}}
	g.Spec = v1alpha1.NodeGroupSpec{Name: name, Provider: v1alpha1.ProviderLocal, ScalingConfig: v1alpha1.ScalingConfig{MinSize: 1, MaxSize: 20, DesiredSize: desired}}
	g.Status = v1alpha1.NodeGroupStatus{Version: "1.36", Replicas: desired, ReadyReplicas: ready}
	g.Status.Conditions = []metav1.Condition{condition(metav1.ConditionTrue, "Ready", "", time.Hour)}
	if ready < desired {
		g.Status.Conditions = []metav1.Condition{condition(metav1.ConditionFalse, "Joining", fmt.Sprintf("%d of %d machines are Ready", ready, desired), time.Minute)}
	}
	return g
}

// newMachine is a machine that was launched some time ago, and has taken the first steps of a join.
func newMachine(id, cluster, group string, number int, age time.Duration, steps int) v1alpha1.Machine {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: id, CreationTimestamp: before(age)}}
	m.Spec = v1alpha1.MachineSpec{
		ClusterName: cluster, NodeGroup: group, Provider: v1alpha1.ProviderLocal, InstanceType: "m5.large", ImageID: "ami-0123456789abcdef0",
		SubnetID: v1alpha1.SubnetID(fmt.Sprintf("subnet-%d", number%3)), InstanceProfile: "muster-node-" + cluster,
	}
	name := fmt.Sprintf("ip-172-31-%d-%d.ec2.internal", number/250, number%250+4)
	m.Status = v1alpha1.MachineStatus{
		Phase: v1alpha1.MachineJoining, NodeName: name, Isolation: v1alpha1.IsolationUserNamespace, PodCIDR: fmt.Sprintf("10.%d.%d.0/24", 244+number/250, number%250),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.31.%d.%d", number/250, number%250+4)},
			{Type: corev1.NodeInternalDNS, Address: name},
		},
		Conditions: []metav1.Condition{condition(metav1.ConditionFalse, "Joining", "it boots", age)},
	}
	at := Noon.Add(-age)
	took := []int{0, 1180, 0, 0, 0, 420, 260, 35, 28, 1340} // milliseconds
	for i, step := range v1alpha1.JoinSteps() {
		if i >= steps {
			break
		}
		if took[i] == 0 && i > 0 { // it joins by a role
			continue
		}
		at = at.Add(time.Duration(took[i]+number*37%190) * time.Millisecond)
		m.Status.Join = append(m.Status.Join, v1alpha1.JoinRecord{Step: step, Time: metav1.NewMicroTime(at)})
	}
	if steps == len(v1alpha1.JoinSteps()) {
		m.Status.Phase = v1alpha1.MachineReady
		m.Status.Conditions = []metav1.Condition{condition(metav1.ConditionTrue, "NodeReady", "", age)}
	}
	return m
}

func node(m v1alpha1.Machine) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeName, CreationTimestamp: m.CreationTimestamp}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OSImage: "Debian GNU/Linux 12 (bookworm)", KernelVersion: "6.18.0", ContainerRuntimeVersion: "containerd://2.4.2"}
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse, corev1.NodeDiskPressure: corev1.ConditionFalse} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Reason: "Kubelet" + string(kind), Message: "kubelet reports it", LastTransitionTime: before(50 * time.Minute)})
	}
	return n
}

// review is a request for a node's serving certificate.
func review(m v1alpha1.Machine, name string, age time.Duration, state csrview.State, d decision.Decision) csrview.Review {
	r := csrview.Review{
		Name: name, Created: Noon.Add(-age), SignerName: "kubernetes.io/kubelet-serving", Requester: csrview.Requester{Username: "system:node:" + m.Status.NodeName},
		Asked: csrview.Asked{CommonName: "system:node:" + m.Status.NodeName, DNSNames: []string{m.Status.NodeName}, Key: "ECDSA P-256"},
		State: state, Verdict: d.Verdict, Rule: d.Rule, Decision: &d, Source: csrview.FromRecord,
	}
	if c, ok := d.Deciding(); ok {
		r.Why = c.Sentence()
	}
	return r
}

var passed = decision.Decision{Verdict: decision.Approve, Checks: []decision.Check{
	{Rule: "signer", Outcome: decision.Pass, Detail: "kubernetes.io/kubelet-serving"},
	{Rule: "requester-is-node", Outcome: decision.Pass, Detail: "the node asks for itself"},
	{Rule: "names-assigned", Outcome: decision.Pass, Detail: "the provider assigned every name and address"},
	{Rule: "bootstrap-binding", Outcome: decision.NotApplicable},
}}

var denied = decision.Decision{Verdict: decision.Deny, Rule: "names-assigned", Checks: []decision.Check{
	{Rule: "signer", Outcome: decision.Pass, Detail: "kubernetes.io/kubelet-serving"},
	{Rule: "names-assigned", Outcome: decision.Refuse, Detail: "10.0.0.1 is not an address of this machine", Hint: "ask for the addresses that the provider assigned"},
}}

// issuedTo are the certificates of a node.
func issuedTo(m v1alpha1.Machine, age time.Duration) []view.Certificate {
	const life = 7 * 24 * time.Hour
	var all []view.Certificate
	for _, signer := range []string{"kubelet-serving", "client-kubelet"} {
		all = append(all, view.Certificate{
			Cluster: m.Spec.ClusterName, Owner: m.Status.NodeName, Signer: signer, Machine: m.Name, Request: "csr-" + signer[:3] + m.Name[2:7], Serial: "3fa9",
			NotBefore: Noon.Add(-age), NotAfter: Noon.Add(life - age),
		})
	}
	return all
}

// World is a small installation: the cluster home, in which a machine is refused, another joins, another leaves and another is
// stopped, and the cluster staging, which is being upgraded.
func World() view.Facts {
	f := view.Facts{
		At: Noon, Clusters: []v1alpha1.Cluster{cluster(home, "1.36"), cluster(staging, "1.35")},
		Groups: []v1alpha1.NodeGroup{group(home, "default", 14, 12), group(home, "gpu", 3, 3), group(staging, "default", 4, 4)},
		Of:     map[string]view.Cluster{},
	}
	for i, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
		s := v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("subnet-%d", i)}}
		s.Spec.AvailabilityZone = zone
		f.Subnets = append(f.Subnets, s)
	}
	creatable(&f)
	all := len(v1alpha1.JoinSteps())
	add := func(m v1alpha1.Machine) {
		f.Machines = append(f.Machines, m)
		of := f.Of[m.Spec.ClusterName]
		if m.Status.Phase == v1alpha1.MachineReady {
			of.Nodes = append(of.Nodes, node(m))
			of.Certificates = append(of.Certificates, issuedTo(m, Noon.Sub(m.CreationTimestamp.Time))...)
			of.Reviews = append(of.Reviews, review(m, "csr-"+m.Name[14:], 20*time.Minute, csrview.Issued, passed))
		}
		f.Of[m.Spec.ClusterName] = of
	}
	for i := 1; i <= 12; i++ {
		add(newMachine(fmt.Sprintf("i-%017x", i), home, "default", i, time.Hour+time.Duration(i)*time.Second, all))
	}
	for i := 13; i <= 15; i++ {
		add(newMachine(fmt.Sprintf("i-%017x", i), home, "gpu", i, 30*time.Hour, all))
	}
	for i := 16; i <= 19; i++ {
		add(newMachine(fmt.Sprintf("i-%017x", i), staging, "default", i, 20*time.Hour, all))
	}
	troubles(&f, add)
	changes(&f)
	planes(&f)
	access(&f)
	return f
}

// troubles adds the machines that are not Ready, and what explain says of them.
func troubles(f *view.Facts, add func(v1alpha1.Machine)) {
	refused := newMachine(Refused, home, "default", 20, 9*time.Minute, 1)
	message := "refused by rule no-entry (M-IAM-01): arn:aws:iam::000000000000:role/muster-node-home is in no access entry"
	refused.Status.Conditions = []metav1.Condition{condition(metav1.ConditionFalse, "Refused", message, 8*time.Minute)}
	add(refused)
	add(newMachine(Joining, home, "default", 21, 4*time.Second, 2))
	leaving := newMachine(Leaving, home, "default", 22, 2*time.Hour, len(v1alpha1.JoinSteps()))
	gone := before(30 * time.Second)
	leaving.DeletionTimestamp, leaving.Status.Phase = &gone, v1alpha1.MachineTerminating
	add(leaving)
	stopped := newMachine(Stopped, home, "default", 23, 5*time.Hour, len(v1alpha1.JoinSteps()))
	stopped.Spec.PowerState, stopped.Status.Phase = v1alpha1.PowerStopped, v1alpha1.MachineStopped
	add(stopped)
	of := f.Of[home]
	of.Reviews = append(of.Reviews, review(refused, "csr-denied", 5*time.Minute, policy.Denied, denied))
	f.Of[home] = of
	f.Wrong = diagnosis.Overview{Reports: []diagnosis.Report{RefusedReport()}}
}

// RefusedReport is what explain says of the machine Refused.
func RefusedReport() diagnosis.Report {
	return diagnosis.Report{
		Kind: "machine", Name: Refused, Verdict: diagnosis.Found, At: Noon,
		Causes: []diagnosis.Finding{{
			Cause: "M-IAM-01", Title: "The node role has no access entry", Step: "APIReached",
			Sentence: "The authenticator refuses the machine, since no access entry of the cluster names its role.",
			Fix:      "aws eks create-access-entry --cluster-name home --principal-arn arn:aws:iam::000000000000:role/muster-node-home --type EC2_LINUX",
			Evidence: []diagnosis.Evidence{
				{Source: "machine", Object: "machine/" + Refused, Look: "muster get machine " + Refused + " -o yaml", Time: Noon.Add(-8 * time.Minute), Code: "Identity/Refused", Text: "arn:aws:iam::000000000000:role/muster-node-home is in no access entry", Cause: "M-IAM-01", Trouble: true},
				{Source: "kubelet", Object: "machine/" + Refused, Look: "muster logs " + Refused + " -c kubelet", Time: Noon.Add(-20 * time.Second), Text: `E1120 11:59:40.120931 1 kubelet_node_status.go:116] "Unable to register node with API server" err="Unauthorized"`},
			},
		}},
		Steps: []diagnosis.Step{{Step: "Launched", State: diagnosis.StepDone, Time: Noon.Add(-9 * time.Minute)}, {Step: "APIReached", State: diagnosis.StepFailed}},
	}
}

// changes adds updates.
func changes(f *view.Facts) {
	newUpdate := func(name, cluster, group string, kind v1alpha1.UpdateType, age time.Duration) *v1alpha1.Update {
		u := v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster, CreationTimestamp: before(age)}}
		u.Spec.ClusterName, u.Spec.NodeGroup, u.Spec.Type = cluster, group, kind
		f.Updates = append(f.Updates, u)
		return &f.Updates[len(f.Updates)-1]
	}
	step := func(name v1alpha1.UpdateStepName, began, ended time.Duration) v1alpha1.UpdateStep {
		s := v1alpha1.UpdateStep{Name: name, StartedAt: before(began)}
		if ended > 0 {
			at := before(ended)
			s.FinishedAt = &at
		}
		return s
	}
	u := newUpdate("7c1e2f00-0000-4000-8000-000000000001", staging, "", "VersionUpdate", 90*time.Second)
	u.Spec.Params = []v1alpha1.UpdateParam{{Type: "Version", Value: "1.36"}}
	u.Status.Message = "the API server of 1.36 starts"
	u.Status.Steps = []v1alpha1.UpdateStep{step(v1alpha1.UpdateStepTurn, 90*time.Second, 90*time.Second), step(v1alpha1.UpdateStepChange, 90*time.Second, 89*time.Second), step(v1alpha1.UpdateStepAPIServer, 89*time.Second, 0)}
	failed := newUpdate("7c1e2f00-0000-4000-8000-000000000002", home, "gpu", "ConfigUpdate", 40*time.Minute)
	end := before(35 * time.Minute)
	failed.Status.Phase, failed.Status.FinishedAt = v1alpha1.UpdateFailed, &end
	failed.Status.Errors = []v1alpha1.UpdateError{{ErrorCode: "PodEvictionFailure", ErrorMessage: "the budget shop/web lets no pod go"}}
	failed.Status.Steps = []v1alpha1.UpdateStep{step(v1alpha1.UpdateStepTurn, 40*time.Minute, 40*time.Minute), step(v1alpha1.UpdateStepUpgrade, 40*time.Minute, 35*time.Minute)}
	done := newUpdate("7c1e2f00-0000-4000-8000-000000000003", home, "", "LoggingUpdate", 26*time.Hour)
	ended := before(26*time.Hour - 4*time.Second)
	done.Status.Phase, done.Status.FinishedAt = v1alpha1.UpdateSuccessful, &ended
}

// planes adds the certificates of control planes.
func planes(f *view.Facts) {
	const year = 365 * 24 * time.Hour
	for _, name := range []string{"", home, staging} {
		of := f.Of[name]
		of.Certificates = append(of.Certificates,
			view.Certificate{Cluster: name, Owner: "cluster-ca", Authority: true, Role: "signs", NotBefore: Noon.Add(-2 * 24 * time.Hour), NotAfter: Noon.Add(10*year - 2*24*time.Hour)},
			view.Certificate{Cluster: name, Owner: "kube-apiserver", Signer: "cluster-ca", NotBefore: Noon.Add(-60 * 24 * time.Hour), NotAfter: Noon.Add(30 * 24 * time.Hour), Renewal: Noon.Add(30 * time.Minute)},
			view.Certificate{Cluster: name, Owner: "etcd", Signer: "etcd-ca", NotBefore: Noon.Add(-2 * 24 * time.Hour), NotAfter: Noon.Add(88 * 24 * time.Hour), Renewal: Noon.Add(58 * 24 * time.Hour)},
		)
		f.Of[name] = of
	}
}

// Many is a cluster with so many machines that are Ready.
func Many(n int) view.Facts {
	f := World()
	f.Clusters, f.Groups = f.Clusters[:1], []v1alpha1.NodeGroup{group(home, "default", int32(n), int32(n))} //nolint:gosec // some thousands
	f.Machines, f.Updates, f.Wrong = nil, nil, diagnosis.Overview{}
	of := view.Cluster{}
	for i := range n {
		m := newMachine(fmt.Sprintf("i-%017x", i+1), home, "default", i+1, time.Hour+time.Duration(i)*10*time.Millisecond, len(v1alpha1.JoinSteps()))
		f.Machines = append(f.Machines, m)
		of.Nodes = append(of.Nodes, node(m))
		of.Certificates = append(of.Certificates, issuedTo(m, time.Duration(i%160)*time.Hour)...)
		of.Reviews = append(of.Reviews, review(m, fmt.Sprintf("csr-%05d", i), 20*time.Minute, csrview.Issued, passed))
	}
	f.Of = map[string]view.Cluster{home: of}
	manyAccess(&f, n)
	return f
}

// The subnets and roles of a new cluster.
const (
	SubnetA     = "subnet-0a000000000000001"
	SubnetB     = "subnet-0b000000000000002"
	ClusterRole = "arn:aws:iam::000000000000:role/eks-cluster"
	NodeRole    = "arn:aws:iam::000000000000:role/team-nodes"
)

// creatable adds what a new cluster can have.
func creatable(f *view.Facts) {
	f.DefaultVPC = "vpc-0d000000000000001"
	for id, zone := range map[string]string{SubnetA: "us-east-1a", SubnetB: "us-east-1b"} {
		s := v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}}
		s.Spec.VPCID, s.Spec.AvailabilityZone, s.Spec.CIDRBlock, s.Spec.MapPublicIPOnLaunch = f.DefaultVPC, zone, "172.31.0.0/20", true
		f.Subnets = append(f.Subnets, s)
	}
	f.Roles = []view.Role{{ARN: ClusterRole, Service: "eks"}, {ARN: NodeRole, Service: "ec2"}}
}
