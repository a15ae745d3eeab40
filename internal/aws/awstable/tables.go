// SPDX-License-Identifier: Apache-2.0

package awstable

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	"muster.dev/muster/internal/aws/awsshape"
)

//go:embed *.txt
var files embed.FS

// load reads a table once. A table that cannot be read is a defect of the build, which this package's test finds.
func load(name string) func() *awsshape.Service {
	return sync.OnceValue(func() *awsshape.Service {
		text, err := files.ReadFile(name + ".txt")
		if err != nil {
			panic(fmt.Sprintf("awstable: %v", err))
		}
		service, err := awsshape.Parse(string(text))
		if err != nil {
			panic(fmt.Sprintf("awstable: %s: %v", name, err))
		}
		return service
	})
}

var services = map[string]func() *awsshape.Service{
	"arc-zonal-shift":   load("arc-zonal-shift"),
	"autoscaling":       load("autoscaling"),
	"cloudformation":    load("cloudformation"),
	"ec2":               load("ec2"),
	"ecr":               load("ecr"),
	"eks":               load("eks"),
	"eks-auth":          load("eks-auth"),
	"events":            load("events"),
	"elasticfilesystem": load("elasticfilesystem"),
	"fis":               load("fis"),
	"iam":               load("iam"),
	"kms":               load("kms"),
	"logs":              load("logs"),
	"pricing":           load("pricing"),
	"sqs":               load("sqs"),
	"ssm":               load("ssm"),
	"sts":               load("sts"),
	"tagging":           load("tagging"),

	"elasticloadbalancing":   load("elasticloadbalancing"),
	"elasticloadbalancingv2": load("elasticloadbalancingv2"),
}

// Names are the names of all services that have a table, sorted.
func Names() []string { return slices.Sorted(maps.Keys(services)) }

// Service finds the table of a service by the name that signatures have: eks, ec2, autoscaling. It is nil for others.
func Service(name string) *awsshape.Service {
	if known, ok := services[name]; ok {
		return known()
	}
	return nil
}

// shared are the services whose requests are signed for one name, and told apart by the Version of the form.
var shared = map[string][]string{"elasticloadbalancing": {"elasticloadbalancing", "elasticloadbalancingv2"}}

// Endpoint is what the requests of a service reach: its table, or one of all services that share its name in signatures.
// It is nil for a service without a table.
func Endpoint(name string) *awsshape.Service {
	table := Service(name)
	if table == nil || shared[table.SignedName()] == nil {
		return table
	}
	first := *Service(table.SignedName())
	for _, version := range shared[table.SignedName()] {
		first.Versions = append(first.Versions, Service(version))
	}
	return &first
}

// Identity is the endpoint of STS and IAM, which tell their requests apart by the Version of the form. Its namespace is
// that of errors that neither is to blame for.
var Identity = sync.OnceValue(func() *awsshape.Service {
	return &awsshape.Service{
		Protocol: awsshape.QueryXML, Namespace: "http://webservices.amazon.com/AWSFault/2005-15-09", Identity: true, Versions: []*awsshape.Service{Service("iam"), Service("sts")},
	}
})
