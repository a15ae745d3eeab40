// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

func TestLaunchTemplates(t *testing.T) {
	w := newWorld(t)
	const create = "CreateLaunchTemplate&LaunchTemplateName=web&ClientToken=one&VersionDescription=first&LaunchTemplateData.InstanceType=t3.small&LaunchTemplateData.MetadataOptions.HttpTokens=required" +
		"&LaunchTemplateData.MetadataOptions.HttpPutResponseHopLimit=2&LaunchTemplateData.TagSpecification.1.ResourceType=instance&LaunchTemplateData.TagSpecification.1.Tag.1.Key=a&LaunchTemplateData.TagSpecification.1.Tag.1.Value=b" +
		"&LaunchTemplateData.SecurityGroupId.1=sg-0123456789abcdef0&TagSpecification.1.ResourceType=launch-template&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=blue"
	w.ask(create+"&DryRun=true", 412, "DryRunOperation")
	made := w.ask(create, 200, "<launchTemplateName>web</launchTemplateName>", "<defaultVersionNumber>1</defaultVersionNumber>", "<latestVersionNumber>1</latestVersionNumber>",
		"<createdBy>arn:aws:iam::"+account+":user/admin</createdBy>", "<key>team</key><value>blue</value>")
	id := between(made, "<launchTemplateId>", "</launchTemplateId>")
	w.ask(create, 200, "<launchTemplateId>"+id+"</launchTemplateId>") // sent again
	w.ask(strings.Replace(create, "t3.small", "t3.large", 1), 400, "IdempotentParameterMismatch")
	w.ask("CreateLaunchTemplate&LaunchTemplateName=web&LaunchTemplateData.InstanceType=t3.small", 400, "InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
	w.ask("CreateLaunchTemplate&LaunchTemplateName=other&LaunchTemplateData.InstanceType=x9.huge", 400, "InvalidParameterValue", "x9.huge")
	w.ask("CreateLaunchTemplate&LaunchTemplateName=other&LaunchTemplateData.InstanceMarketOptions.SpotOptions.BlockDurationMinutes=60", 400, "Muster does not support LaunchTemplateData.InstanceMarketOptions.SpotOptions.BlockDurationMinutes")
	w.ask("CreateLaunchTemplate&LaunchTemplateName=a&LaunchTemplateData.InstanceType=t3.small", 400, "InvalidLaunchTemplateName.MalformedException")
	w.wasAsked("ec2:CreateLaunchTemplate arn:aws:ec2:eu-west-1:" + account + ":launch-template/* aws:requesttag/team=blue aws:tagkeys=team ec2:region=eu-west-1")

	version := "CreateLaunchTemplateVersion&LaunchTemplateId=" + id + "&SourceVersion=$Latest&ClientToken=two&LaunchTemplateData.InstanceType=m5.large"
	w.ask(version, 200, "<versionNumber>2</versionNumber>", "<defaultVersion>false</defaultVersion>", "<instanceType>m5.large</instanceType>", "<httpPutResponseHopLimit>2</httpPutResponseHopLimit>")
	w.ask(version, 200, "<versionNumber>2</versionNumber>") // sent again
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=web&LaunchTemplateData.KeyName=k", 200, "<versionNumber>3</versionNumber>", "<keyName>k</keyName>")
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=web&SourceVersion=9&LaunchTemplateData.KeyName=k", 400, "InvalidLaunchTemplateId.VersionNotFound")
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=web&SourceVersion=last&LaunchTemplateData.KeyName=k", 400, "<Code>InvalidParameterValue</Code><Message>Invalid launch template version", "it must be a number, $Latest or $Default")
	w.ask("DeleteLaunchTemplateVersions&LaunchTemplateName=web&LaunchTemplateVersion.1=$Latest", 400, "<Code>InvalidParameterValue</Code>", "versions are deleted by their numbers")
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateData.KeyName=k", 400, "MissingParameter")
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=none&LaunchTemplateData.KeyName=k", 400, "InvalidLaunchTemplateName.NotFoundException")
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateId=lt-0000000000000000f&LaunchTemplateData.KeyName=k", 400, "InvalidLaunchTemplateId.NotFound")

	all := w.ask("DescribeLaunchTemplateVersions&LaunchTemplateId="+id, 200, "<versionDescription>first</versionDescription>", "<resourceType>instance</resourceType>", "<securityGroupIdSet><item>sg-0123456789abcdef0</item>")
	if strings.Index(all, "<versionNumber>3<") > strings.Index(all, "<versionNumber>1<") {
		t.Errorf("the newest version is not the first: %s", all)
	}
	for choice, want := range map[string]string{"LaunchTemplateVersion.1=$Default": "1", "LaunchTemplateVersion.1=$Latest": "3", "MinVersion=2&MaxVersion=2": "2", "Filter.1.Name=instance-type&Filter.1.Value.1=m5.*": "2"} {
		text := w.ask("DescribeLaunchTemplateVersions&LaunchTemplateName=web&"+choice, 200, "<versionNumber>"+want+"</versionNumber>")
		if strings.Count(text, "<versionNumber>") != 1 {
			t.Errorf("%s: %s", choice, text)
		}
	}
	first := w.ask("DescribeLaunchTemplateVersions&LaunchTemplateName=web&MaxResults=2", 200, "<versionNumber>3<", "<versionNumber>2<", "<nextToken>")
	w.ask("DescribeLaunchTemplateVersions&LaunchTemplateName=web&MaxResults=2&NextToken="+between(first, "<nextToken>", "</nextToken>"), 200, "<versionNumber>1<")
	w.ask("DescribeLaunchTemplateVersions&LaunchTemplateVersion.1=$Default", 200, "<versionNumber>1<")
	w.ask("DescribeLaunchTemplateVersions&LaunchTemplateVersion.1=1", 400, "MissingParameter")

	w.ask("ModifyLaunchTemplate&LaunchTemplateId="+id+"&SetDefaultVersion=3", 200, "<defaultVersionNumber>3</defaultVersionNumber>")
	w.ask("ModifyLaunchTemplate&LaunchTemplateId="+id+"&SetDefaultVersion=8", 400, "VersionNotFound")
	w.ask("DescribeLaunchTemplates&LaunchTemplateName.1=web&Filter.1.Name=tag:team&Filter.1.Value.1=blue", 200, "<defaultVersionNumber>3<", "<latestVersionNumber>3<", id)
	w.ask("DescribeLaunchTemplates&LaunchTemplateName.1=none", 400, "InvalidLaunchTemplateName.NotFoundException")
	w.ask("DescribeLaunchTemplates&LaunchTemplateId.1=lt-0000000000000000f", 400, "InvalidLaunchTemplateId.NotFound")

	w.ask("DeleteLaunchTemplateVersions&LaunchTemplateId="+id+"&LaunchTemplateVersion.1=2&LaunchTemplateVersion.2=3&LaunchTemplateVersion.3=7", 200,
		"<successfullyDeletedLaunchTemplateVersionSet><item><launchTemplateId>"+id, "<code>unexpectedError</code>", "<code>launchTemplateVersionDoesNotExist</code>")
	w.ask("CreateLaunchTemplateVersion&LaunchTemplateName=web&LaunchTemplateData.KeyName=k", 200, "<versionNumber>4</versionNumber>")
	w.wasAsked("ec2:DeleteLaunchTemplateVersions arn:aws:ec2:eu-west-1:" + account + ":launch-template/" + id + " aws:resourcetag/team=blue")

	w.gate.Denies = true
	for _, request := range []string{
		create, "CreateLaunchTemplateVersion&LaunchTemplateName=web&LaunchTemplateData.KeyName=k", "ModifyLaunchTemplate&LaunchTemplateName=web&SetDefaultVersion=1",
		"DeleteLaunchTemplate&LaunchTemplateName=web", "DeleteLaunchTemplate&LaunchTemplateName=none", "DeleteLaunchTemplateVersions&LaunchTemplateName=web&LaunchTemplateVersion.1=1", "DescribeLaunchTemplates", "DescribeLaunchTemplateVersions&LaunchTemplateName=web",
	} {
		w.ask(request, 403, "UnauthorizedOperation")
	}
	w.gate.Denies = false
	kept := &v1alpha1.LaunchTemplate{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: id}, kept); err != nil || kept.Spec.DefaultVersion != 3 || len(kept.Spec.Versions) != 3 {
		t.Errorf("kept is %+v, %v", kept.Spec, err)
	}
	w.ask("DeleteLaunchTemplate&LaunchTemplateName=web&DryRun=true", 412, "DryRunOperation")
	w.ask("DeleteLaunchTemplate&LaunchTemplateName=web", 200, "<launchTemplateId>"+id+"</launchTemplateId>")
	w.ask("DeleteLaunchTemplate&LaunchTemplateId="+id, 400, "InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID "+id+", does not exist.")
}

// A launch template keeps 1000 versions. The next one is refused until an old version is deleted.
func TestVersionsOfALaunchTemplateAreLimited(t *testing.T) {
	const id, most = "lt-0000000000000000a", 1000
	full := &v1alpha1.LaunchTemplate{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.LaunchTemplateSpec{Name: "web", DefaultVersion: 1, LatestVersion: most}}
	for number := range int64(most) {
		full.Spec.Versions = append(full.Spec.Versions, v1alpha1.LaunchTemplateVersion{Number: number + 1, Data: runtime.RawExtension{Raw: []byte("{}")}})
	}
	w := newWorld(t, full)
	const create = "CreateLaunchTemplateVersion&LaunchTemplateName=web&LaunchTemplateData.KeyName=k"
	w.ask(create, 400, "<Code>MaxTemplateVersionLimitExceeded</Code><Message>The launch template "+id+" has 1000 versions: Muster keeps at most 1000")
	w.ask("DeleteLaunchTemplateVersions&LaunchTemplateId="+id+"&LaunchTemplateVersion.1=2", 200)
	w.ask(create, 200, "<versionNumber>1001</versionNumber>")
}
