// SPDX-License-Identifier: Apache-2.0

package jsonvalue

import (
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

// AppendError writes the body of a refusal: {"__type":"CODE","message":"…"} and the members that the table declares for
// the code. Members that it does not declare are left out.
func AppendError(out []byte, service *awsshape.Service, problem *awsfault.Error) []byte {
	out = append(out, `{"__type":`...)
	out = AppendString(out, problem.Code)
	name, members := "message", []byte(nil)
	if fault := service.Fault(problem.Code); fault != nil && fault.Shape != nil {
		known := awsshape.Object{}
		for _, m := range fault.Shape.Members {
			if strings.EqualFold(m.Name, "message") {
				name = m.Out
				continue
			}
			if value, ok := problem.Members[m.Name]; ok {
				known[m.Name] = value
			}
		}
		if written, err := Append(nil, fault.Shape, awsshape.ValueOf(known)); err == nil && len(written) > 2 {
			members = written[1 : len(written)-1]
		}
	}
	out = append(out, ',')
	out = append(AppendString(out, name), ':')
	out = AppendString(out, problem.Message)
	if members != nil {
		out = append(out, ',')
		out = append(out, members...)
	}
	return append(out, '}')
}
