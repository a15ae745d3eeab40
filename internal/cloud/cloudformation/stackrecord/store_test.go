// SPDX-License-Identifier: Apache-2.0

package stackrecord_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

func store(t *testing.T) stackrecord.Store {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	key, err := stackrecord.OpenKey(filepath.Join(t.TempDir(), "stacks.key"))
	if err != nil {
		t.Fatal(err)
	}
	return stackrecord.Store{Management: fake.NewClientBuilder().WithScheme(scheme).Build(), Key: key}
}

func record() *stackrecord.Record {
	r := &stackrecord.Record{ID: "0b1c2d3e", Name: "Net", Description: "d"}
	r.ARN = stackrecord.ARNOf("us-east-1", "000000000000", r.Name, r.ID)
	r.Asked = stackplan.Asked{
		Template: `{"Parameters": {"P": {"Type": "String", "NoEcho": true}}, "Resources": {"A": {"Type": "AWS::EC2::VPC"}}}`, Parameters: map[string]string{"P": "abcdefgh"}, Tags: map[string]string{"team": "a"},
	}
	r.Operation = stackrecord.Operation{ID: "o", Caller: []byte("abcdefgh")}
	r.Outputs = []stackrecord.Output{{Name: "P", Value: "abcdefgh", Secret: true}, {Name: "V", Value: "vpc-1", Export: "e"}}
	r.State = stack.State{Status: stack.CreateInProgress, OnFailure: stack.Rollback, Resources: []stack.Resource{{
		LogicalID: "A", Type: "AWS::EC2::VPC", Serial: 1, PhysicalID: "vpc-1", Status: stack.CreateComplete, Attributes: map[string]any{"x": "abcdefgh"},
		Definition: stack.Definition{Properties: map[string]any{"P": "abcdefgh"}},
	}}}
	return r
}

// A stack is read as it was written, and its object shows no secret.
func TestAStackIsKept(t *testing.T) {
	s := store(t)
	r := record()
	r.Tell(time.Unix(1700000000, 0).UTC(), []stack.Event{{Status: stack.CreateInProgress}, {LogicalID: "A", Status: stack.CreateComplete}})
	if err := s.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	again, err := s.Named(t.Context(), "Net")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.State, again.State); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(r.Outputs, again.Outputs); diff != "" || again.ARN != r.ARN || again.Asked.Parameters["P"] != "abcdefgh" {
		t.Errorf("%s %+v", diff, again)
	}
	object := &v1alpha1.Stack{}
	if err := s.Management.Get(t.Context(), client.ObjectKey{Name: r.ID}, object); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(object)
	if err != nil || bytes.Contains(raw, []byte("abcdefgh")) || !bytes.Contains(raw, []byte("****")) {
		t.Errorf("%v %s", err, raw)
	}
}

// A change that another one overtook is decided anew, and an error changes nothing.
func TestChangesAreDecidedAnew(t *testing.T) {
	s := store(t)
	if err := s.Create(t.Context(), record()); err != nil {
		t.Fatal(err)
	}
	tries := 0
	if _, err := s.Update(t.Context(), "0b1c2d3e", func(r *stackrecord.Record) error {
		if tries++; tries == 1 {
			if _, err := s.Update(t.Context(), r.ID, func(r *stackrecord.Record) error { r.State.Reason = "other"; return nil }); err != nil {
				return err
			}
		}
		r.TerminationProtection = true
		return nil
	}); err != nil || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
	refused := errors.New("refused")
	if _, err := s.Update(t.Context(), "0b1c2d3e", func(r *stackrecord.Record) error { r.State.Reason = "third"; return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if r, err := s.Get(t.Context(), "0b1c2d3e"); err != nil || r.State.Reason != "other" || !r.TerminationProtection {
		t.Errorf("%+v, %v", r, err)
	}
}

// A resource that is older than the seed of its stack keeps its token, and all others have one that is made of the seed.
func TestTheSeedOfAStack(t *testing.T) {
	old := record()
	old.ARN, old.State.Serial = "arn:old", 1
	if got := old.SeedOf(1); got != "arn:old" {
		t.Error(got)
	}
	old.Sow()
	first := old.Seed
	old.State.Serial = 2
	old.Sow()
	if old.Seed != first || old.SeedOf(1) != "arn:old" || old.SeedOf(2) != first {
		t.Errorf("%+v", old.Hidden)
	}
	other := &stackrecord.Record{}
	other.Sow()
	if other.Seed == first || other.SeedOf(1) != other.Seed {
		t.Errorf("%+v", other.Hidden)
	}
}

func TestEventsAreBounded(t *testing.T) {
	r := record()
	for range 700 {
		r.Tell(time.Unix(1700000000, 0), []stack.Event{{LogicalID: "A", Status: stack.UpdateInProgress}})
	}
	if len(r.Events) != 500 || r.Told != 700 || r.Events[499].ID != "0b1c2d3e-700" {
		t.Errorf("%d events of %d", len(r.Events), r.Told)
	}
}

// Texts that actions answer with, however long, never make an object that etcd does not take.
func TestReasonsAreBounded(t *testing.T) {
	r := record()
	long := strings.Repeat("ü", 20<<10)
	r.State.Resources = []stack.Resource{{LogicalID: "A", Serial: 1, Status: stack.UpdateFailed, Reason: long}}
	r.State.Reason = long
	for range 700 {
		r.Tell(time.Unix(1700000000, 0), []stack.Event{{LogicalID: "A", Status: stack.UpdateFailed, Reason: long}})
	}
	size := 0
	for _, e := range r.Events {
		if !utf8.ValidString(e.Reason) || !strings.HasSuffix(e.Reason, "ü…") {
			t.Fatalf("%q", e.Reason)
		}
		size += len(e.Reason)
	}
	if size > 256<<10 || len(r.Events) < 200 || len(r.State.Reason) > 1024 || len(r.State.Resources[0].Reason) > 1024 {
		t.Errorf("%d events of %d bytes; reasons of %d and %d bytes", len(r.Events), size, len(r.State.Reason), len(r.State.Resources[0].Reason))
	}
}

// A hundred stacks as large as those of clusters stay within 100 MiB: what the API server's double has of them, and all of them read at
// once.
func TestManyStacksAreSmall(t *testing.T) {
	s := store(t)
	before := heap()
	for i := range 100 {
		r := record()
		r.ID = fmt.Sprintf("0b1c2d3e-%04d", i)
		r.Asked.Template = fmt.Sprintf(`{"Description": "of a test", "Metadata": {"Long": %q}, "Resources": {"A": {"Type": "AWS::EC2::VPC"}}}`, strings.Repeat(r.ID, 50_000/len(r.ID)))
		for n := range 200 {
			id := fmt.Sprintf("Resource%d", n)
			r.State.Resources = append(r.State.Resources, stack.Resource{
				LogicalID: id, Type: "AWS::EC2::Subnet", Serial: n, PhysicalID: fmt.Sprintf("subnet-%s-%d", r.ID, n), Status: stack.CreateComplete,
				Attributes: map[string]any{"SubnetId": fmt.Sprintf("subnet-%d", n)}, Definition: stack.Definition{Properties: map[string]any{"CidrBlock": fmt.Sprintf("10.0.%d.0/24", n)}},
			})
			for _, status := range []stack.Status{stack.CreateInProgress, stack.CreateInProgress, stack.CreateComplete} {
				r.Tell(time.Unix(1700000000, 0), []stack.Event{{LogicalID: id, Type: "AWS::EC2::Subnet", Status: status, Reason: "Resource creation Initiated"}})
			}
		}
		if err := s.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	kept := heap() - before
	all, err := s.List(t.Context())
	if err != nil || len(all) != 100 || len(all[0].Events) != 500 {
		t.Fatalf("%d stacks, %v", len(all), err)
	}
	read := heap() - before
	t.Logf("%d stacks: %d KiB kept, %d KiB with all of them read", len(all), kept>>10, read>>10)
	if read > 100<<20 {
		t.Errorf("%d MiB", read>>20)
	}
	goruntime.KeepAlive(all)
	goruntime.KeepAlive(s)
}

// heap is the memory in use, in bytes.
func heap() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A key that is lost or damaged is told, and nothing is begun anew.
func TestAnotherKey(t *testing.T) {
	s := store(t)
	if err := s.Create(t.Context(), record()); err != nil {
		t.Fatal(err)
	}
	s.Key = store(t).Key
	if _, err := s.Named(t.Context(), "Net"); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "stacks.key")
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := stackrecord.OpenKey(path); err == nil || !strings.Contains(err.Error(), "restore the file") {
		t.Error(err)
	}
}
