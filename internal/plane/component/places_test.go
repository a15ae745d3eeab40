// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// apart gives each listener of a configuration an address to listen on and another one to be reached at. It returns what
// a text has that names them, by listener.
func apart(c *Config) map[string][]string {
	marks := map[string][]string{}
	for list, of := range []any{&c.Places, &c.Account.Places} {
		places := reflect.ValueOf(of).Elem()
		for i := range places.NumField() {
			at := func(side int) (netip.AddrPort, []string) {
				address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, byte(18 + list), byte(100 + i), byte(side)}), uint16(60000+1000*list+100*side+i))
				return address, []string{address.Addr().String(), fmt.Sprintf("=%d", address.Port()), fmt.Sprintf(":%d", address.Port())}
			}
			place, name := Place{}, places.Type().Field(i).Name
			place.Listen, marks[name+" listens"] = at(1)
			place.Reach, marks[name+" is reached"] = at(2)
			places.Field(i).Set(reflect.ValueOf(place))
		}
	}
	return marks
}

// Each address of each listener is in the flags, files and certificates that it belongs to, and in no others: nothing
// that others are told is what a component listens on.
func TestPlaces(t *testing.T) {
	c := fixed(true)
	c.Simulates = true
	marks := apart(&c)
	named := map[string][]string{}
	find := func(where, text string) {
		for listener, of := range marks {
			if slices.ContainsFunc(of, func(mark string) bool { return strings.Contains(text, mark) }) && !slices.Contains(named[listener], where) {
				named[listener] = append(named[listener], where)
			}
		}
	}
	for _, spec := range specs(t, c) {
		find(spec.Name+" address", "="+spec.Address)
		for _, arg := range spec.Args {
			flag, _, _ := strings.Cut(arg, "=")
			find(spec.Name+" "+flag, arg)
		}
		for _, file := range spec.Files {
			for line := range strings.Lines(file.Content) {
				key, _, _ := strings.Cut(strings.TrimLeft(line, " -"), ":")
				find(fmt.Sprintf("%s %s %s", spec.Name, filepath.Base(file.Path), strings.TrimSpace(key)), line)
			}
		}
		if spec.Probe != nil {
			find(spec.Name+" probe", spec.Probe.URL)
		}
	}
	for _, credential := range credentials(t, c) {
		for _, address := range credential.Addresses {
			find("certificate "+credential.Name, address.String())
		}
	}
	golden(t, "places.yaml", named)
}
