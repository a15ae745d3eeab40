// SPDX-License-Identifier: Apache-2.0

package diagnosis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

// of is evidence that a signal describes, with words around the fragments.
func of(s cause.Signal, random *rand.Rand) diagnosis.Evidence {
	words := []string{"E1120 12:00:00.000000 1 x.go:1]", `err="something`, "again", "\x1b[31m", "節點"}
	text := words[random.IntN(len(words))]
	for _, fragment := range s.Text {
		text += " " + fragment + " " + words[random.IntN(len(words))]
	}
	ago := time.Duration(random.IntN(50)) * time.Second
	if !s.Source.Passing() { // it says since when that is so
		ago += 10 * time.Minute
	}
	return diagnosis.Evidence{
		Source: s.Source, Object: "machine/i-1", Time: noon.Add(-ago), Code: strings.Replace(s.Code, "*", "any", 1), Text: text, Trouble: true,
	}
}

// signals are one random signal of each cause that has any.
func signals(t *testing.T, random *rand.Rand) map[cause.ID]cause.Signal {
	t.Helper()
	all := map[cause.ID]cause.Signal{}
	for _, c := range catalogue(t).All() {
		if c.State == cause.Named && len(c.Signals) > 0 {
			all[c.ID] = c.Signals[random.IntN(len(c.Signals))]
		}
	}
	return all
}

// wanted are the causes that are told of some: all but those that another one excludes or implies.
func wanted(t *testing.T, ids ...cause.ID) []cause.ID {
	t.Helper()
	var left []cause.ID
	for _, id := range ids {
		if !slices.ContainsFunc(ids, func(other cause.ID) bool {
			c, _ := catalogue(t).Find(other)
			return slices.Contains(c.Excludes, id) || slices.Contains(c.Implies, id)
		}) {
			left = append(left, id)
		}
	}
	slices.Sort(left)
	return left
}

// Every signal names its cause and no other, alone and in every mixture of two causes.
func TestMixturesOfTwo(t *testing.T) {
	t.Parallel()
	mixtures := 0
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := signals(t, random)
		for a, first := range all {
			for b, second := range all {
				f := was()
				f.Evidence = []diagnosis.Evidence{of(first, random), of(second, random)}
				random.Shuffle(2, func(i, j int) { f.Evidence[i], f.Evidence[j] = f.Evidence[j], f.Evidence[i] })
				ids := []cause.ID{a}
				if a != b {
					ids = append(ids, b)
				}
				r := diagnosis.Decide(catalogue(t), f, noon)
				got := causes(r)
				slices.Sort(got)
				if want := wanted(t, ids...); !slices.Equal(got, want) || r.Verdict != diagnosis.Found {
					t.Fatalf("%s and %s: %s %v, want %v\n%+v", a, b, r.Verdict, got, want, f.Evidence)
				}
				mixtures++
			}
		}
	}
	if mixtures < 30 {
		t.Errorf("%d mixtures", mixtures)
	}
}

// transient is what a join that goes well leaves in logs and conditions for a moment.
func transient(ago time.Duration) []diagnosis.Evidence {
	node := diagnosis.Evidence{Source: cause.FromNode, Object: "node/node-1", Time: noon.Add(-ago), Code: "Ready/KubeletNotReady", Text: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"}
	request := diagnosis.Evidence{Source: cause.FromRequest, Object: "csr/csr-1", Time: noon.Add(-ago), Code: "Pending/"}
	return []diagnosis.Evidence{line(ago, refusedDial), line(ago, noHost), line(ago, badAuthority), line(ago, unauthorized), line(ago, "E1120 12:00:00.000000 1 x.go:1] anything"), node, request}
}

// A machine that is slow, and goes on, has no cause, whatever its programs said for a moment.
func TestHealthyButSlow(t *testing.T) {
	t.Parallel()
	for i := range 300 {
		random := rand.New(rand.NewPCG(uint64(i), 2))
		steps := cause.Steps()
		last := steps[random.IntN(len(steps)-2)]
		f := joining(time.Duration(20+random.IntN(100))*time.Second, last)
		stood := time.Duration(1+random.IntN(9)) * time.Second // since the last step
		if last != cause.Launched {
			f.Steps[last] = noon.Add(-stood)
		} else {
			f.Since, f.Steps = noon.Add(-stood), map[cause.Step]time.Time{cause.Launched: noon.Add(-stood)}
		}
		all := transient(time.Duration(random.IntN(50)) * time.Second)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		f.Evidence = all[:random.IntN(len(all)+1)]
		if r := diagnosis.Decide(catalogue(t), f, noon); r.Verdict != diagnosis.OnItsWay || len(r.Causes) > 0 {
			t.Fatalf("case %d, at %s for %s: %s %v", i, last, stood, r.Verdict, causes(r))
		}
		f.Healthy = true
		for i := range f.Evidence { // a renewal has just begun
			if f.Evidence[i].Source == cause.FromRequest {
				f.Evidence[i].Time = noon.Add(-stood)
			}
		}
		f.Evidence = slices.DeleteFunc(f.Evidence, func(e diagnosis.Evidence) bool { return e.Source == cause.FromNode }) // it is Ready
		if r := diagnosis.Decide(catalogue(t), f, noon); r.Verdict != diagnosis.Healthy || len(r.Causes) > 0 {
			t.Fatalf("case %d, Ready: %s %v", i, r.Verdict, causes(r))
		}
	}
}

// Evidence that the catalogue does not know is shown, and has no name.
func TestUnknownConditions(t *testing.T) {
	t.Parallel()
	for i, e := range []diagnosis.Evidence{
		{Source: cause.FromMachine, Code: "Ready/NoProvider"},
		{Source: cause.FromMachine, Code: "Ready/ProviderFailed", Text: "connection refused"},
		{Source: cause.FromMachine, Code: "Ready/DiskReserve"},
		{Source: cause.FromMachine, Code: "Ready/HostRootNotAllowed"},
		{Source: cause.FromMachine, Code: "Identity/Refused", Text: "refused by rule reserved"},
		{Source: cause.FromMachine, Code: "Drained/Draining", Text: "2 pods are left"},
		{Source: cause.FromReport, Code: "BootFailed", Text: "no such host"},
		{Source: cause.FromReport, Code: "ProgramFails", Text: "kubelet ends again and again: exit status 1; its last lines: nobody has seen this"},
		{Source: cause.FromReport, Code: "NotRegistered", Text: "the kubelet has not registered its node: Unauthorized"},
		{Source: cause.FromGroup, Code: "Ready/ClusterNotFound"},
		{Source: cause.FromGroup, Code: "Ready/Invalid", Text: "invalid kernel flag"},
		{Source: cause.FromGroup, Code: "Repair/Busy"},
		{Source: cause.FromCluster, Code: "Ready/Unhealthy", Text: "certificate signed by unknown authority"},
		{Source: cause.FromUpdate, Code: "OperationNotPermitted"},
		{Source: cause.FromUpdate, Code: "ClusterUnreachable", Text: "i/o timeout"},
		{Source: cause.FromNode, Code: "KernelReady/ForkFailedOutOfPIDs"},
		{Source: cause.FromNode, Code: "Ready/KubeletNotReady", Text: "something new"},
		{Source: cause.FromNode, Code: "NetworkingReady/InterfaceNotUp"},
		{Source: cause.FromRequest, Code: "Failed/"},
		{Source: cause.FromAuthenticator, Code: "reserved", Time: noon},
		{Source: cause.FromHost, Code: "Endpoint/Failed", Text: "EOF"},
		{Source: cause.FromHost, Code: "Endpoint/NoNameServer", Text: "i/o timeout"},
		{Source: cause.FromHost, Code: "ClientCertificate/Unreadable"},
		{Source: cause.FromUnit, Code: "kubelet.service/masked", Text: "kubelet.service is masked"},
		{Source: cause.FromUnit, Code: "nodeadm-config.service/failed", Text: "unexpected EOF"},
		{Source: cause.FromConfiguration, Code: "Webhook/Deployments"},
	} {
		e.Object, e.Trouble = "machine/i-1", true
		for _, f := range []diagnosis.Facts{was(), joining(time.Hour, cause.Launched)} {
			f.Evidence = []diagnosis.Evidence{e}
			r := diagnosis.Decide(catalogue(t), f, noon)
			if r.Verdict != diagnosis.NotKnown || len(r.Causes) > 0 || len(r.Other) != 1 {
				t.Errorf("case %d, %s: %s %v, shown %d", i, fmt.Sprint(e.Source, " ", e.Code), r.Verdict, causes(r), len(r.Other))
			}
		}
	}
}
