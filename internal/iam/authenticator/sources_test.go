// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/tools/record"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// until polls: what is waited for takes a goroutine of another package.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

// following runs sources until the test ends.
func following(t *testing.T, change func(*SourcesConfig)) *Sources {
	t.Helper()
	c := SourcesConfig{Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond}
	change(&c)
	s, err := NewSources(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// becomes is the user that somebody is mapped to now, "" if to none.
func becomes(t *testing.T, s *Sources, arn string) string {
	t.Helper()
	table := s.Table()
	if table == nil {
		return ""
	}
	name := arn[strings.LastIndex(arn, "/")+1:]
	k := ststest.User(name, 1)
	if strings.Contains(arn, "role/") {
		k = ststest.Session(name, "s", 1)
	}
	return table.Map(principal(t, k)).User.Name
}

const (
	alice = "arn:aws:iam::111122223333:user/alice"
	nodes = "arn:aws:iam::111122223333:role/nodes"
)

func awsAuth(users string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth", UID: "u-1"}, Data: map[string]string{"mapUsers": users}}
}

func TestTheFirstSourceThatNamesSomebodyDecides(t *testing.T) {
	entries, mappings := fcache.NewFakeControllerSource(), fcache.NewFakeControllerSource()
	client := fake.NewClientset(awsAuth("- userarn: " + alice + "\n  username: by-aws-auth\n"))
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	write(t, path, "mapUsers:\n- userarn: "+alice+"\n  username: by-file\n")
	s := following(t, func(c *SourcesConfig) {
		c.AccessEntries, c.IdentityMappings, c.AWSAuth, c.File = entries, mappings, AWSAuth(client), path
	})
	is := func(want string) {
		t.Helper()
		until(t, "it is "+want, func() bool { return becomes(t, s, alice) == want })
	}
	is("by-aws-auth")
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
	mapping := &iamv1alpha1.IAMIdentityMapping{ObjectMeta: metav1.ObjectMeta{Name: "alice", UID: "u-2"}, Spec: iamv1alpha1.IAMIdentityMappingSpec{ARN: alice, Username: "by-mapping"}}
	mappings.Add(mapping)
	is("by-mapping")
	entry := &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "alice", UID: "u-3"}, Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: alice, Username: "by-entry"}}
	entries.Add(entry)
	is("by-entry")
	entries.Delete(entry)
	is("by-mapping")
	mappings.Delete(mapping)
	is("by-aws-auth")
	if err := client.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), "aws-auth", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	is("by-file")
	write(t, path, "mapUsers:\n- userarn: "+alice+"\n  username: by-new-file\n")
	is("by-new-file")
	write(t, path, "mapUsers: {not: [a, list")
	time.Sleep(300 * time.Millisecond) //nolint:forbidigo // nothing tells that a file was read and left aside
	if got := becomes(t, s, alice); got != "by-new-file" {
		t.Errorf("without a file that can be read it is %q", got)
	}
	write(t, path, "mapUsers: []\n")
	is("")
}

func TestAFileThatIsGoneMapsNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	const text = "mapUsers:\n- userarn: " + alice + "\n  username: by-file\n"
	write(t, path, text)
	registry := prometheus.NewRegistry()
	s := following(t, func(c *SourcesConfig) { c.File, c.Poll, c.Metrics = path, 50*time.Millisecond, NewMetrics(registry) })
	is := func(want string) {
		t.Helper()
		until(t, "it is "+want, func() bool { return becomes(t, s, alice) == want })
	}
	is("by-file")
	var flapped atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			if becomes(t, s, alice) != "by-file" {
				flapped.Store(true)
			}
			time.Sleep(time.Millisecond) //nolint:forbidigo // it is looked at all the time
		}
	})
	if err := os.Remove(path); err != nil { // as people do who do not know of rename
		t.Fatal(err)
	}
	time.Sleep(goneAfter / 2) //nolint:forbidigo // it is away for a moment
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(goneAfter) //nolint:forbidigo // until it was looked at again
	stop()
	watch.Wait()
	if flapped.Load() {
		t.Error("a file that was replaced mapped nobody for a moment")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	is("")
	_, problems := s.file.mappings()
	if len(problems) != 1 || problems[0].Saw != "is gone" {
		t.Errorf("problems: %v", problems)
	}
	write(t, path, text) // the same as before
	is("by-file")
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range gathered {
		if name := family.GetName(); strings.HasPrefix(name, "aws_iam_authenticator_dynamic_file") && family.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("%s is 0 with a file and nothing else", name)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// A finalizer keeps an object that was deleted, for as long as somebody likes; the principal that it let in is out at
// once.
func TestWhatIsBeingDeletedMapsNobody(t *testing.T) {
	entries, mappings, maps := fcache.NewFakeControllerSource(), fcache.NewFakeControllerSource(), fcache.NewFakeControllerSource()
	s := following(t, func(c *SourcesConfig) { c.AccessEntries, c.IdentityMappings, c.AWSAuth = entries, mappings, maps })
	entry := &accessv1alpha1.AccessEntry{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u-1", Generation: 1},
		Spec:       accessv1alpha1.AccessEntrySpec{PrincipalARN: alice, Username: "by-entry"},
	}
	mapping := &iamv1alpha1.IAMIdentityMapping{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u-2", Generation: 1}, Spec: iamv1alpha1.IAMIdentityMappingSpec{ARN: alice, Username: "by-mapping"},
	}
	config := awsAuth("- userarn: " + alice + "\n  username: by-aws-auth\n")
	entries.Add(entry)
	mappings.Add(mapping)
	maps.Add(config)
	for _, step := range []struct {
		want   string
		object interface {
			metav1.Object
			runtime.Object
		}
		from *fcache.FakeControllerSource
	}{{"by-entry", entry, entries}, {"by-mapping", mapping, mappings}, {"by-aws-auth", config, maps}} {
		until(t, "it is "+step.want, func() bool { return becomes(t, s, alice) == step.want })
		going := step.object.DeepCopyObject().(interface {
			metav1.Object
			runtime.Object
		})
		going.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		going.SetFinalizers([]string{"example.org/wait"})
		if going.GetGeneration() > 0 {
			going.SetGeneration(2) // as API servers do
		}
		step.from.Modify(going)
	}
	until(t, "it is nobody", func() bool { return becomes(t, s, alice) == "" })
}

// Only principals that an entry would make a node are looked up as instances: all others are somebody's session, or a
// stranger's.
func TestOfWhomItMattersThatTheyAreInstances(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	write(t, path, `
mapRoles:
- {rolearn: "arn:aws:iam::111122223333:role/nodes", username: "system:node:{{EC2PrivateDNSName}}", groups: [system:nodes]}
- {rolearn: "arn:aws:iam::111122223333:role/named", username: "system:node:{{SessionName}}", groups: [system:nodes]}
- {rolearn: "arn:aws:iam::111122223333:role/grouped", username: "host", groups: ["host:{{EC2PrivateDNSName}}"]}
- {rolearn: "arn:aws:iam::111122223333:role/people", username: "people:{{SessionName}}"}
mapAccounts: ["111122223333"]
`)
	s := following(t, func(c *SourcesConfig) { c.File = path })
	until(t, "the file is read", func() bool { return s.Table() != nil })
	for role, want := range map[string]bool{"nodes": true, "named": true, "grouped": true, "people": false, "others": false} {
		p := principal(t, ststest.Session(role, "i-0123456789abcdef0", 1))
		if got := s.InstanceMatters(p); got != want {
			t.Errorf("role %s: %v, want %v: %+v", role, got, want, s.Table().Map(p))
		}
	}
	if new(Sources).InstanceMatters(principal(t, ststest.Session("nodes", "i-0123456789abcdef0", 1))) {
		t.Error("it matters before anything is mapped")
	}
}

func TestABadEntryIsToldOnceAndHidesNoOther(t *testing.T) {
	events := record.NewFakeRecorder(100)
	client := fake.NewClientset(awsAuth("- userarn: arn:aws:nonsense\n  username: bad\n- userarn: " + alice + "\n  username: alice\n"))
	s := following(t, func(c *SourcesConfig) { c.AWSAuth, c.Events = AWSAuth(client), events })
	until(t, "alice is let in", func() bool { return becomes(t, s, alice) == "alice" })
	if first := <-events.Events; !strings.Contains(first, "Warning Mapping") || !strings.Contains(first, "mapUsers[0]") {
		t.Errorf("the event says %s", first)
	}
	for n, users := range []string{
		"- userarn: arn:aws:nonsense\n  username: bad\n- userarn: " + alice + "\n  username: alice-2\n",
		"- userarn: " + alice + "\n  username: alice-3\n",
		"- userarn: arn:aws:nonsense\n  username: bad\n- userarn: " + alice + "\n  username: alice-4\n",
	} {
		if _, err := client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), awsAuth(users), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		want := "alice-" + string(rune('2'+n))
		until(t, want, func() bool { return becomes(t, s, alice) == want })
		again := n == 2 // it was gone in between
		select {
		case e := <-events.Events:
			if !again {
				t.Errorf("it was told again: %s", e)
			}
		case <-time.After(map[bool]time.Duration{true: time.Minute, false: time.Millisecond}[again]):
			if again {
				t.Error("it is wrong again, and nobody was told")
			}
		}
	}
}

// missing is a kind that is not installed until it is.
type missing struct {
	*fcache.FakeControllerSource
	installed chan struct{}
}

func (m missing) there() error {
	select {
	case <-m.installed:
		return nil
	default:
		return apierrors.NewNotFound(schema.GroupResource{Group: "access.muster.dev", Resource: "accessentries"}, "")
	}
}

func (m missing) List(o metav1.ListOptions) (runtime.Object, error) {
	if err := m.there(); err != nil {
		return nil, err
	}
	return m.FakeControllerSource.List(o)
}

func (m missing) Watch(o metav1.ListOptions) (watch.Interface, error) {
	if err := m.there(); err != nil {
		return nil, err
	}
	return m.FakeControllerSource.Watch(o)
}

func TestAKindThatIsNotInstalledHasNoObjectsUntilItIs(t *testing.T) {
	m := missing{fcache.NewFakeControllerSource(), make(chan struct{})}
	m.Add(&accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: alice, Username: "by-entry"}})
	client := fake.NewClientset(awsAuth("- userarn: " + alice + "\n  username: by-aws-auth\n"))
	s := following(t, func(c *SourcesConfig) { c.AccessEntries, c.AWSAuth = m, AWSAuth(client) })
	until(t, "it is not waited for", func() bool { return becomes(t, s, alice) == "by-aws-auth" })
	close(m.installed)
	until(t, "it is found", func() bool { return becomes(t, s, alice) == "by-entry" })
}

func TestNobodyIsLetInBeforeAllMappingsAreKnown(t *testing.T) {
	client := fake.NewClientset()
	down := errors.New("down")
	client.PrependReactor("list", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) { return down != nil, nil, down })
	entries := fcache.NewFakeControllerSource()
	entries.Add(&accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: alice, Username: "by-entry"}})
	s := following(t, func(c *SourcesConfig) { c.AccessEntries, c.AWSAuth = entries, AWSAuth(client) })
	until(t, "entries are known", func() bool { return s.entries.HasSynced() })
	if s.Table() != nil || s.Ready() == nil || !strings.Contains(s.Ready().Error(), "aws-auth") {
		t.Errorf("ready although aws-auth is not known: %v", s.Ready())
	}
}

func TestModesGoOneWay(t *testing.T) {
	client := fake.NewClientset()
	record := func(m identity.Mode) error { return RecordMode(t.Context(), client, "muster-system", m) }
	for _, step := range []struct {
		mode identity.Mode
		says string // an error
	}{
		{identity.ModeConfigMap, ""},
		{identity.ModeConfigMap, ""},
		{identity.ModeAPIAndConfigMap, ""},
		{identity.ModeConfigMap, "it is API_AND_CONFIG_MAP already (ConfigMap muster-system/muster-authenticator)"},
		{identity.ModeAPI, ""},
		{identity.ModeAPIAndConfigMap, "goes one way"},
		{"SOMETHING", "there is no"},
		{identity.ModeAPI, ""},
	} {
		err := record(step.mode)
		if step.says == "" && err != nil || step.says != "" && (!errors.Is(err, ErrMode) || !strings.Contains(err.Error(), step.says)) {
			t.Errorf("%s: %v; want %q", step.mode, err, step.says)
		}
	}
	m, err := client.CoreV1().ConfigMaps("muster-system").Get(t.Context(), ModeConfigMap, metav1.GetOptions{})
	if err != nil || m.Data[modeKey] != "API" {
		t.Errorf("recorded: %v, %v", m, err)
	}
	m.Data[modeKey] = "RUBBISH"
	if _, err := client.CoreV1().ConfigMaps("muster-system").Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := record(identity.ModeAPI); !errors.Is(err, ErrMode) {
		t.Errorf("a record that nobody understands is %v", err)
	}
	// Another replica is faster, and further on.
	client = fake.NewClientset()
	client.PrependReactor("create", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
		_ = client.Tracker().Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: ModeConfigMap}, Data: map[string]string{modeKey: "API"}})
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, ModeConfigMap)
	})
	if err := record(identity.ModeConfigMap); !errors.Is(err, ErrMode) {
		t.Errorf("behind another replica: %v", err)
	}
	client = fake.NewClientset()
	client.PrependReactor("get", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("down") })
	if err := record(identity.ModeConfigMap); err == nil || errors.Is(err, ErrMode) {
		t.Errorf("an API server that is down is %v", err)
	}
}

var _ cache.ListerWatcher = missing{}
