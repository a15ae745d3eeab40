// SPDX-License-Identifier: Apache-2.0

package awsroute

import (
	"strings"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

// The codes for what is not there.
const (
	unknownOperation = "UnknownOperationException"
	invalidAction    = "InvalidAction"
)

// Decide returns the action of a target, or the refusal.
func Decide(list *awsactions.List, t Target) (awsactions.Action, error) {
	switch {
	case t.Service == "":
		return awsactions.Action{}, awsfault.Errorf("MissingAuthenticationToken", "The request is not signed, and nothing in it says which service it is for: sign it with AWS Signature Version 4").WithStatus(403)
	case !list.HasService(t.Service):
		return awsactions.Action{}, awsfault.Errorf(unknownOperation, "Muster has no service %q. AWS_ENDPOINT_URL sends the requests of all services here: "+
			"to send this one to AWS, use another shell, or take back what `muster env` set", shown(t.Service)).WithStatus(404)
	}
	action, ok := list.Find(t.Service, t.Action)
	switch {
	case !ok:
		return awsactions.Action{}, unknown(t)
	case action.Mark == awsactions.Refused:
		return awsactions.Action{}, refused(t, action.Reason)
	case list.NotYet(t.Service, t.Action):
		return awsactions.Action{}, refused(t, "Muster does not answer "+t.Service+":"+t.Action+" yet")
	}
	return action, nil
}

// unknown is AWS's answer to an action that it does not know.
func unknown(t Target) error {
	switch {
	case t.Protocol == awsshape.EC2Query || t.Protocol == awsshape.QueryXML:
		if t.Action == "" {
			return awsfault.Errorf("MissingAction", "The request has no parameter Action")
		}
		return awsfault.Errorf(invalidAction, "The action %s is not valid for this web service.", shown(t.Action))
	case t.Protocol == awsshape.RestJSON:
		return awsfault.Errorf(unknownOperation, "No action of %s has this method and path", t.Service).WithStatus(404)
	case t.Action == "":
		return awsfault.Errorf(unknownOperation, "The header X-Amz-Target names no action of %s", t.Service)
	}
	return awsfault.Errorf(unknownOperation, "%s has no action %q", t.Service, shown(t.Action))
}

// refused is the answer to an action that the account does not have, in a code that the service's clients know.
func refused(t Target, reason string) error {
	switch t.Protocol {
	case awsshape.RestJSON:
		if t.Service == "elasticfilesystem" {
			return awsfault.Errorf("BadRequest", "%s", reason)
		}
		if t.Service == "arc-zonal-shift" || t.Service == "fis" {
			return awsfault.Errorf("ValidationException", "%s", reason)
		}
		return awsfault.Errorf("InvalidRequestException", "%s", reason)
	case awsshape.JSON10, awsshape.JSON11:
		return awsfault.Errorf("UnsupportedOperationException", "%s", reason)
	case awsshape.EC2Query, awsshape.QueryXML:
	}
	return awsfault.Errorf("UnsupportedOperation", "%s", reason)
}

// shown bounds what a message repeats of a request.
func shown(text string) string {
	text = strings.ToValidUTF8(text, "�")
	if runes := []rune(text); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return text
}
