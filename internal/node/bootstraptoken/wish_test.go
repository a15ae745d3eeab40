// SPDX-License-Identifier: Apache-2.0

package bootstraptoken_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
)

func drawn() (token.Token, error) { return token.Parse("abcdef.zyxwvutsrq987654") }

func TestWishedToken(t *testing.T) {
	t.Parallel()
	both := []string{"signing", "authentication"}
	soon := noon.Add(300 * time.Millisecond)
	for name, tc := range map[string]struct {
		wish    bootstraptoken.Wish
		groups  []string
		expires time.Time
	}{
		"bound to nothing": {bootstraptoken.Wish{Usages: both, Groups: []string{token.DefaultGroup}}, []string{token.DefaultGroup}, time.Time{}},
		"the shortest":     {bootstraptoken.Wish{TTL: time.Second, Usages: both}, nil, noon.Add(time.Second)},
		"by name, to rejoin": {
			bootstraptoken.Wish{TTL: time.Hour, Usages: both, NodeName: "a", Rejoin: true, Groups: []string{token.DefaultGroup}},
			[]string{token.DefaultGroup, "system:bootstrappers:muster:name:a", "system:bootstrappers:muster:rejoin:a"},
			noon.Add(time.Hour),
		},
		"by machine and group": {
			bootstraptoken.Wish{Usages: both, Machine: "i-1", Group: "g"},
			[]string{"system:bootstrappers:muster:i-1", "system:bootstrappers:muster:group:g"},
			time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.wish.Description = "for rack 7"
			b, err := tc.wish.Bootstrap(soon, drawn)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.groups, b.Groups, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("groups (-want +got)\n%s", diff)
			}
			if !b.Expires.Equal(tc.expires) || b.Token.Reveal() != "abcdef.zyxwvutsrq987654" || !cmp.Equal(b.Usages, both) || b.Description != "for rack 7" {
				t.Errorf("got %+v, want it to expire at %s", b, tc.expires)
			}
		})
	}
}

func TestImpossibleWish(t *testing.T) {
	t.Parallel()
	never := func() (token.Token, error) {
		t.Error("a token was drawn for a wish that cannot be met")
		return drawn()
	}
	for _, tc := range []struct {
		wish bootstraptoken.Wish
		draw func() (token.Token, error)
		says string
	}{
		{bootstraptoken.Wish{TTL: -1}, never, "invalid ttl -1ns: must not be negative"},
		{bootstraptoken.Wish{TTL: time.Second - 1}, never, "is too short: the end of a token is kept in whole seconds"},
		{bootstraptoken.Wish{Rejoin: true}, never, "rejoin needs nodeName"},
		{bootstraptoken.Wish{NodeName: "A_B"}, never, `"A_B" is not the name of a node`},
		{bootstraptoken.Wish{}, func() (token.Token, error) { return token.Token{}, errors.New("no randomness") }, "no randomness"},
		{bootstraptoken.Wish{}, drawn, "a token needs a usage"},
		{bootstraptoken.Wish{Usages: []string{"authentication"}, NodeName: "worker-1", Pattern: "rack-*"}, drawn, "no node name is both"},
	} {
		_, err := tc.wish.Bootstrap(noon, tc.draw)
		wantErr(t, err, tc.says)
	}
}

func TestWishedHost(t *testing.T) {
	t.Parallel()
	if m, err := (bootstraptoken.Wish{NodeName: "a", Machine: "i-1"}).Host(); m != nil || err != nil {
		t.Errorf("without an address: %+v, %v", m, err)
	}
	m, err := bootstraptoken.Wish{NodeName: "a", Group: "g", Addresses: []string{"10.0.0.1", "fd00::1"}}.Host()
	if err != nil {
		t.Fatal(err)
	}
	want := &policy.Machine{ID: "host-a", NodeName: "a", Group: "g", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}}
	if diff := cmp.Diff(want, m, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, tc := range []struct {
		wish bootstraptoken.Wish
		says string
	}{
		{bootstraptoken.Wish{Addresses: []string{"10.0.0.1"}}, "addresses needs nodeName"},
		{bootstraptoken.Wish{NodeName: "a", Machine: "i-1", Addresses: []string{"10.0.0.1"}}, "addresses registers the host as machine host-a"},
		{bootstraptoken.Wish{NodeName: "a", Addresses: []string{"10.0.0.1", "here"}}, `invalid addresses "here": must be an IP address`},
		{bootstraptoken.Wish{NodeName: "a", Addresses: []string{"fe80::1%eth0"}}, `invalid addresses "fe80::1%eth0": must be an IP address`},
		{bootstraptoken.Wish{NodeName: "a", Addresses: []string{"127.0.0.1"}}, `cannot register the host: `},
	} {
		_, err := tc.wish.Host()
		wantErr(t, err, tc.says)
	}
}

// A caller says it in the words of its user. The user's text stays as it is, even if it looks like a field or a verb of
// fmt.
func TestWishErrorInOtherWords(t *testing.T) {
	t.Parallel()
	_, err := bootstraptoken.Wish{NodeName: "a", Addresses: []string{"addresses %s"}}.Host()
	var wrong *bootstraptoken.WishError
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
	const want = `invalid --ADDRESSES "addresses %s": must be an IP address`
	if got := wrong.Text(func(f bootstraptoken.Field) string { return "--" + strings.ToUpper(string(f)) }); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
