// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoClusters is a root module that has the example twice. The ranges of the VPCs are the same: they know nothing of
// each other.
const twoClusters = `
module "blue" {
  source = "./cluster"
  name   = "blue"
}

module "green" {
  source      = "./cluster"
  name        = "green"
  node_labels = { pool = "api" }
}

output "endpoints" {
  value = [module.blue.endpoint, module.green.endpoint]
}
`

// TestTerraformTwoClusters makes two clusters in two VPCs by one run of Terraform, plans again, and destroys them.
//
//story:about cloud
func TestTerraformTwoClusters(t *testing.T) {
	t.Parallel()
	tf := newTerraformOf(t, func(dir string, example map[string][]byte) {
		if err := os.Mkdir(filepath.Join(dir, "cluster"), 0o700); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{"main.tf": []byte(twoClusters)}
		for name, content := range example {
			files[filepath.Join("cluster", name)] = content
		}
		writeModule(t, dir, files)
	})
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	tf.as = w

	tf.made()
	tf.nothingToDo()
	var endpoints []string
	if err := json.Unmarshal([]byte(tf.must("output", "-json", "endpoints")), &endpoints); err != nil || len(endpoints) != 2 || endpoints[0] == endpoints[1] {
		t.Fatalf("endpoints %v, %v", endpoints, err)
	}
	vpcs := strings.Fields(w.mustKubectl("--context=muster-management", "get", "clusters", "-A", "-o", `jsonpath={range .items[?(@.spec.name!="muster")]}{.status.vpcID}{"\n"}{end}`))
	if len(vpcs) != 2 || vpcs[0] == vpcs[1] {
		t.Errorf("the clusters are in the VPCs %v, want two", vpcs)
	}
	for cluster, pool := range map[string]string{"blue": "web", "green": "api"} {
		own := *tf
		own.kubeconfig = filepath.Join(tf.dir, "kubeconfig-"+cluster)
		if _, err := w.aws(w.admin, "eks", "update-kubeconfig", "--name", cluster, "--kubeconfig", own.kubeconfig); err != nil {
			t.Fatal(err)
		}
		own.ready(1, labelled(pool))
	}
	tf.destroyed()
	if after := w.whatThereIs(); after != before {
		t.Errorf("before:\n%s\nafter destroy:\n%s", before, after)
	}
}
