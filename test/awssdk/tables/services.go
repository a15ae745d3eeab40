// SPDX-License-Identifier: Apache-2.0

package main

// service is one that has a table.
type service struct {
	name       string // as signatures name it
	client     string // the package of the SDK
	protocol   string
	operations []string // nil means all
}

// services says which operations the tables have. To add an action, add its name here and run make generate.
func services() []service {
	return []service{
		{name: "eks", client: "eks", protocol: "restjson"},
	}
}

func (s service) table(client *source) (string, error) {
	return schemaTable(client, s.name, s.protocol, s.operations)
}
