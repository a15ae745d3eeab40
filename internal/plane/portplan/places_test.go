// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/statedir"
)

// The file of ports keeps its form, in which installations of before have written theirs, and each port is the place of
// its component.
func TestPlacesOfPorts(t *testing.T) {
	for of, tc := range map[string]struct {
		file   string
		ports  any
		places func(ports any) any
	}{
		"the account": {
			`{"managementEtcd":20001,"managementEtcdPeer":20002,"management":20003,"managementServer0":20006,"managementServer1":20007,"identity":20004,"registry":20005}`,
			&AccountPorts{}, func(ports any) any { return ports.(*AccountPorts).Places() },
		},
		"a cluster": {
			`{"etcd":20001,"etcdPeer":20002,"apiServer":20003,"apiServer0":20014,"apiServer1":20015,"apiServer2":20016,"controllerManager":20004,"scheduler":20005,"certificateController":20006,` +
				`"certificateControllerMetrics":20007,"certificateControllerAuthorization":20008,"authenticator":20009,"podWebhook":20010,` +
				`"podWebhookMetrics":20011,"podWebhookHealth":20012,"tokenSigner":20013}`,
			&Ports{}, func(ports any) any { return ports.(*Ports).Places() },
		},
	} {
		t.Run(of, func(t *testing.T) {
			if err := json.Unmarshal([]byte(tc.file), tc.ports); err != nil {
				t.Fatal(err)
			}
			if raw, err := json.Marshal(tc.ports); err != nil || string(raw) != tc.file {
				t.Errorf("%s, %v; want %s", raw, err, tc.file)
			}
			want, got := map[string]component.Place{}, map[string]component.Place{}
			ports, places := reflect.ValueOf(tc.ports).Elem(), reflect.ValueOf(tc.places(tc.ports))
			for i := range ports.NumField() {
				want[ports.Type().Field(i).Name] = OnLoopback(int(ports.Field(i).Int()))
			}
			for i := range places.NumField() {
				got[places.Type().Field(i).Name] = places.Field(i).Interface().(component.Place)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
	if at := OnLoopback(20001); at.Listen.String() != "127.0.0.1:20001" || at.Reach != at.Listen || at.URL() != "https://127.0.0.1:20001" {
		t.Errorf("%+v", at)
	}
}

// An installation of before, whose management plane had no front, gets ports for API servers behind it and keeps the
// others. The API server of before listens at the port that is the front's.
func TestPortsOfAManagementPlaneWithoutAFront(t *testing.T) {
	state := statedir.Dir(t.TempDir())
	planes := opened(t, state)
	first, err := planes.Account()
	planes.Close()
	if err != nil {
		t.Fatal(err)
	}
	occupy(t, first.Management)
	write(t, state.Ports(), fmt.Sprintf(`{"managementEtcd":%d,"managementEtcdPeer":%d,"management":%d,"identity":%d,"registry":%d}`,
		first.ManagementEtcd, first.ManagementEtcdPeer, first.Management, first.Identity, first.Registry))
	planes = New(state, func() ([]runner.Running, error) { return []runner.Running{{Process: component.Management}}, nil })
	defer planes.Close()
	second, err := planes.Account()
	if err != nil {
		t.Fatal(err)
	}
	if second.ManagementServer0 < Min || second.ManagementServer1 < Min || second.ManagementServer0 == second.ManagementServer1 {
		t.Errorf("%+v", second)
	}
	second.ManagementServer0, second.ManagementServer1 = first.ManagementServer0, first.ManagementServer1
	if second != first {
		t.Errorf("ports were %+v, and are %+v", first, second)
	}
}
