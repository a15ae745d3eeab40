// SPDX-License-Identifier: Apache-2.0

package awstable_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awstable"
)

func TestEveryTableIsReadAndListed(t *testing.T) {
	entries, err := filepath.Glob("*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry, ".txt"))
	}
	slices.Sort(names)
	if listed := awstable.Names(); !slices.Equal(names, listed) {
		t.Fatalf("there are tables of %v, and %v are listed", names, listed)
	}
	for _, name := range names {
		service := awstable.Service(name)
		if service.Name != name || len(service.Operations) == 0 {
			t.Errorf("%s: the table is of %s and has %d operations", name, service.Name, len(service.Operations))
		}
		if awstable.Service(name) != service {
			t.Errorf("%s is read twice", name)
		}
	}
	if awstable.Service("s3") != nil {
		t.Error("there is a table of s3")
	}
}

// Services that are signed for one name are told apart by their versions.
func TestEndpoints(t *testing.T) {
	signed := map[string][]string{}
	for _, name := range awstable.Names() {
		key := awstable.Service(name).SignedName()
		signed[key] = append(signed[key], name)
	}
	for key, names := range signed {
		for _, name := range names {
			endpoint := awstable.Endpoint(name)
			var versions []string
			for _, s := range endpoint.Versions {
				versions = append(versions, s.Name)
			}
			if endpoint.SignedName() != key || len(names) > 1 && !slices.Equal(versions, names) || len(names) == 1 && endpoint != awstable.Service(name) {
				t.Errorf("the endpoint of %s, signed for %s, has the services %v, want %v", name, key, versions, names)
			}
		}
	}
	if awstable.Endpoint("s3") != nil {
		t.Error("there is an endpoint of s3")
	}
}

func TestEveryActionHasItsShapes(t *testing.T) {
	for _, s := range awsactions.Services() {
		table := awstable.Service(s.Name)
		if table == nil {
			t.Errorf("%s has no table", s.Name)
			continue
		}
		for _, action := range s.Actions {
			if table.Operation(action.Name) == nil {
				t.Errorf("%s:%s is in docs/aws-actions.md and not in the table: add it to test/awssdk/tables/services.go and run make generate", s.Name, action.Name)
			}
		}
	}
}
