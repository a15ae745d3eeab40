// SPDX-License-Identifier: Apache-2.0

package musterexplain_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/addons/addon/addontest"
	"muster.dev/muster/internal/addons/musterexplain"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	objects := addontest.Objects(t, musterexplain.Addon())
	manifesttest.Bindings(t, objects)
	manifesttest.Narrow(t, objects)
}

// The name in the API server's certificate for the API is that of the Service which the APIService names.
func TestNames(t *testing.T) {
	t.Parallel()
	objects, err := musterexplain.Addon().Base(addontest.Config(true))
	if err != nil {
		t.Fatal(err)
	}
	addontest.Has(t, objects, "APIService .spec.group", `"explain.muster.dev"`)
	addontest.Has(t, objects, "APIService .spec.version", `"v1alpha1"`)
	addontest.Has(t, objects, "APIService .spec.service", `{"name":"muster-explain","namespace":"kube-system","port":443}`)
	if component.ServerAccountAPIs != "muster-explain.kube-system.svc" {
		t.Errorf("the certificate is for %s", component.ServerAccountAPIs)
	}
	made := addontest.Configured(t, musterexplain.Addon(), "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Service, metadata: {name: a}}]}", "", "")
	if len(made) != 1 { // no budget of disruptions: there are no pods
		t.Errorf("%d objects", len(made))
	}
}

// Without the authority of the cluster nothing is applied: an APIService that trusts anybody is none.
func TestWithoutAuthority(t *testing.T) {
	t.Parallel()
	c := addontest.Config(true)
	c.TrustedAuthority = ""
	if _, err := musterexplain.Addon().Base(c); err == nil || !strings.Contains(err.Error(), "authority is missing") {
		t.Errorf("%v", err)
	}
	c = addontest.Config(true)
	c.Network.Addresses = nil
	if _, err := musterexplain.Addon().Base(c); err == nil {
		t.Error("no address in the VPC is no error")
	}
}
