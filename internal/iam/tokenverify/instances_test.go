// SPDX-License-Identifier: Apache-2.0

package tokenverify_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
)

// stated is a verifier that believes what it is told.
type stated struct{ identity tokenverify.Identity }

func (s stated) Verify(context.Context, ststoken.Token) (tokenverify.Identity, error) {
	return s.identity, nil
}

func (stated) Admit(string)         {}
func (stated) Admitted(string) bool { return false }

const (
	nodeID  = "i-0123456789abcdef0"
	profile = "arn:aws:iam::111122223333:instance-profile/nodes"
)

func sessionOf(t testing.TB, role, session string) tokenverify.Identity {
	t.Helper()
	var id tokenverify.Identity
	id.ARN = mustARN(t, "arn:aws:sts::111122223333:assumed-role/"+role+"/"+session)
	id.CanonicalARN = mustARN(t, "arn:aws:iam::111122223333:role/"+role)
	id.Account, id.UserID, id.SessionName, id.ValidUntil = "111122223333", "AROA1", session, time.Now().Add(15*time.Minute)
	return id
}

func TestWhichSessionsAreInstances(t *testing.T) {
	good := tokenverify.Instance{ID: nodeID, PrivateDNSName: "IP-10-0-0-1.ec2.internal", Profile: profile, Live: true}
	with := func(change func(*tokenverify.Instance)) map[string]tokenverify.Instance {
		i := good
		change(&i)
		return map[string]tokenverify.Instance{nodeID: i}
	}
	roles := map[string]string{profile: "arn:aws:iam::111122223333:role/path/of/nodes"}
	for _, tc := range []struct {
		name    string
		session string
		ec2     map[string]tokenverify.Instance
		roles   map[string]string
		err     error
		want    string // the name, or what the reason says; empty if it is not even asked
	}{
		{"a node", nodeID, with(func(*tokenverify.Instance) {}), nil, nil, "ip-10-0-0-1.ec2.internal"},
		{"a node whose profile has this role", nodeID, with(func(*tokenverify.Instance) {}), roles, nil, "ip-10-0-0-1.ec2.internal"},
		{"a session with another name", "deploy", nil, nil, nil, ""},
		{"an ID that no instance can have", "i-0123456789ABCDEF0", nil, nil, nil, ""},
		{"an instance that there is not", nodeID, nil, nil, nil, "no such instance"},
		{"an instance that ended", nodeID, with(func(i *tokenverify.Instance) { i.Live, i.PrivateDNSName = false, "" }), nil, nil, "does not run"},
		{"an instance without a name", nodeID, with(func(i *tokenverify.Instance) { i.PrivateDNSName = "" }), nil, nil, "no private DNS name"},
		{"an instance without a profile", nodeID, with(func(i *tokenverify.Instance) { i.Profile = "" }), nil, nil, "no instance profile"},
		{"an instance of another account", nodeID, with(func(i *tokenverify.Instance) { i.Profile = strings.Replace(profile, "1111", "9999", 1) }), nil, nil, "not of account"},
		{"an instance with a profile of another role", nodeID, with(func(*tokenverify.Instance) {}), map[string]string{profile: "arn:aws:iam::111122223333:role/others"}, nil, "not one of role"},
		{"an instance with a profile that is not for nodes", nodeID, with(func(i *tokenverify.Instance) { i.Profile += "-2" }), roles, nil, "not one of role"},
		{"EC2 that does not answer", nodeID, nil, nil, errors.New("down"), "down"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := 0
			i, err := tokenverify.NewInstances(stated{sessionOf(t, "nodes", tc.session)}, tokenverify.InstancesConfig{
				Roles: tc.roles, Window: time.Millisecond,
				Describe: func(context.Context, []string) (map[string]tokenverify.Instance, error) {
					asked++
					return tc.ec2, tc.err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := i.Verify(t.Context(), ststoken.Token{})
			switch {
			case err != nil:
				t.Error(err)
			case tc.want == "":
				if got.Instance != nil || got.Unproven != nil || asked != 0 {
					t.Errorf("%+v, asked %d times", got, asked)
				}
			case got.Instance != nil:
				if got.Instance.PrivateDNSName != tc.want || got.Instance.ID != nodeID || got.Unproven != nil {
					t.Errorf("%+v", got)
				}
				if left := time.Until(got.ValidUntil); left > 31*time.Second {
					t.Errorf("it counts for %s, though the instance may end", left)
				}
			case got.Unproven == nil || !strings.Contains(got.Unproven.Error(), tc.want):
				t.Errorf("unproven because %v; want %q", got.Unproven, tc.want)
			case (kind(got.Unproven) == "unavailable") != (tc.err != nil):
				t.Errorf("%s: %v", kind(got.Unproven), got.Unproven)
			}
		})
	}
}

func TestInstancesAreAskedForTogetherAndAgainWhenTheyAreOld(t *testing.T) {
	ids := make([]string, 450)
	all := map[string]tokenverify.Instance{}
	identities := make([]tokenverify.Identity, len(ids))
	for n := range ids {
		ids[n] = fmt.Sprintf("i-%017x", n)
		all[ids[n]] = tokenverify.Instance{ID: ids[n], PrivateDNSName: fmt.Sprintf("node-%d.internal", n), Profile: profile, Live: true}
		identities[n] = sessionOf(t, "nodes", ids[n])
	}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		verifier := &each{}
		i, err := tokenverify.NewInstances(verifier, tokenverify.InstancesConfig{Describe: func(_ context.Context, asked []string) (map[string]tokenverify.Instance, error) {
			mu.Lock()
			defer mu.Unlock()
			sizes = append(sizes, len(asked))
			found := maps.Clone(all)
			maps.DeleteFunc(found, func(id string, _ tokenverify.Instance) bool { return !slices.Contains(asked, id) })
			return found, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		round := func() {
			var group sync.WaitGroup
			for n := range ids {
				group.Go(func() {
					got, err := i.Verify(context.WithValue(t.Context(), who{}, identities[n]), ststoken.Token{})
					if err != nil || got.Instance == nil || got.Instance.PrivateDNSName != fmt.Sprintf("node-%d.internal", n) {
						t.Errorf("%d: %+v: %v", n, got, err)
					}
				})
			}
			group.Wait()
		}
		round()
		round()
		if total := sum(sizes); total != 450 || slices.Max(sizes) != 200 || len(sizes) > 6 {
			t.Errorf("asked for %v", sizes)
		}
		time.Sleep(31 * time.Second) //nolint:forbidigo // it is a synctest bubble: of the bubble's clock
		round()
		if total := sum(sizes); total != 900 {
			t.Errorf("asked for %v; all are too old by now", sizes)
		}
		time.Sleep(time.Second) //nolint:forbidigo // it is a synctest bubble: until nobody waits for more to ask
	})
}

type who struct{}

// each says of everybody what the context says.
type each struct{}

func (*each) Verify(ctx context.Context, _ ststoken.Token) (tokenverify.Identity, error) {
	id, _ := ctx.Value(who{}).(tokenverify.Identity)
	id.ValidUntil = time.Now().Add(15 * time.Minute)
	return id, nil
}

func (*each) Admit(string)         {}
func (*each) Admitted(string) bool { return false }

func sum(all []int) (total int) {
	for _, n := range all {
		total += n
	}
	return total
}

// An older answer of EC2 counts for the rest of its time, and not for as long again.
func TestAnInstanceCountsForAsLongAsWhatEC2SaidOfIt(t *testing.T) {
	id := sessionOf(t, "nodes", nodeID)
	synctest.Test(t, func(t *testing.T) {
		i, err := tokenverify.NewInstances(&each{}, tokenverify.InstancesConfig{Describe: func(context.Context, []string) (map[string]tokenverify.Instance, error) {
			return map[string]tokenverify.Instance{nodeID: {ID: nodeID, PrivateDNSName: "node.internal", Profile: profile, Live: true}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), who{}, id)
		first, err := i.Verify(ctx, ststoken.Token{})
		if err != nil || time.Until(first.ValidUntil) != 30*time.Second {
			t.Errorf("at first it counts for %s: %v", time.Until(first.ValidUntil), err)
		}
		time.Sleep(25 * time.Second) //nolint:forbidigo // it is a synctest bubble: of the bubble's clock
		if later, err := i.Verify(ctx, ststoken.Token{}); err != nil || !later.ValidUntil.Equal(first.ValidUntil) {
			t.Errorf("25 s later it counts for %s more: %v", time.Until(later.ValidUntil), err)
		}
	})
}

func TestAnAnswerAboutAnInstanceThatThereIsNotIsNotKeptForLong(t *testing.T) {
	identityOf := sessionOf(t, "nodes", nodeID)
	synctest.Test(t, func(t *testing.T) {
		there := false
		i, err := tokenverify.NewInstances(&each{}, tokenverify.InstancesConfig{Describe: func(context.Context, []string) (map[string]tokenverify.Instance, error) {
			if !there {
				return nil, nil
			}
			return map[string]tokenverify.Instance{nodeID: {ID: nodeID, PrivateDNSName: "node.internal", Profile: profile, Live: true}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), who{}, identityOf)
		for _, want := range []bool{false, false, true} {
			got, err := i.Verify(ctx, ststoken.Token{})
			if err != nil || (got.Instance != nil) != want {
				t.Errorf("want %v: %+v: %v", want, got, err)
			}
			if there {
				time.Sleep(7 * time.Second) //nolint:forbidigo // it is a synctest bubble: of the bubble's clock
			}
			there = true
		}
		time.Sleep(time.Second) //nolint:forbidigo // it is a synctest bubble: until nobody waits for more to ask
	})
}

// Everybody has an AWS account, and can name sessions there like instances: EC2 has better things to answer.
func TestEC2IsNotAskedAboutThoseOfWhomItDoesNotMatter(t *testing.T) {
	for _, needed := range []bool{false, true} {
		id, asked := sessionOf(t, "nodes", nodeID), 0
		i, err := tokenverify.NewInstances(stated{id}, tokenverify.InstancesConfig{
			Needed: func(p identity.Principal) bool { return needed && p.SessionName == nodeID },
			Window: time.Millisecond, MaxAge: 30 * time.Second,
			Describe: func(context.Context, []string) (map[string]tokenverify.Instance, error) { asked++; return nil, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := i.Verify(t.Context(), ststoken.Token{})
		if err != nil || got.Instance != nil || (got.Unproven != nil) != needed || (asked == 1) != needed {
			t.Errorf("needed %v: asked %d times: %+v: %v", needed, asked, got, err)
		}
		if left := time.Until(got.ValidUntil); left > 6*time.Second {
			t.Errorf("needed %v: it counts for %s, though it may matter before", needed, left)
		}
	}
}
