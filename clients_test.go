// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tables of internal/cloud stand for AWS's clients: EC2's alone, which is linked for another reason, takes more
// than a minute to compile with the race detector. The clients that the tables are compared with are test/awssdk's.
func TestNoMoreClientsOfAWSAreLinked(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, found := range regexp.MustCompile(`aws-sdk-go-v2/service/(\S+) v`).FindAllStringSubmatch(string(mod), -1) {
		if !strings.HasPrefix(found[1], "internal/") {
			got = append(got, found[1])
		}
	}
	slices.Sort(got)
	if want := []string{"ec2", "iam", "signin", "sso", "ssooidc", "sts"}; !slices.Equal(got, want) {
		t.Errorf("go.mod requires the clients %v, want %v", got, want)
	}
}
