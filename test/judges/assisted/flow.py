"""Drives sealift serve through the flow of a disconnected ISO with assisted-service-client.

flow.py URL PULL-SECRET VERSION [TOKEN]: prints a line of JSON for each call, with its error if it failed.
"""

import json
import sys
import urllib.request

from assisted_service_client import ApiClient, Configuration, api, models
from assisted_service_client.rest import ApiException

url, secret, version = sys.argv[1:4]
config = Configuration()
config.host = url + "/api/assisted-install"
if len(sys.argv) > 4:
    config.api_key["Authorization"] = sys.argv[4]
    config.api_key_prefix["Authorization"] = "Bearer"
client = ApiClient(configuration=config)
installer = api.InstallerApi(api_client=client)
versions = api.VersionsApi(api_client=client)
events = api.EventsApi(api_client=client)
manifests = api.ManifestsApi(api_client=client)
domains = api.ManagedDomainsApi(api_client=client)
operators = api.OperatorsApi(api_client=client)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPXmhdrEYpNBELFzRHT6SRI4Aa2wFLqX1Vf8OBBaVcGa me@example"
NETWORK = """interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address: [{ip: 192.0.2.10, prefix-length: 24}]
"""


def call(name, act, check=lambda result: True):
    try:
        result = act()
        wrong = None if check(result) else "the answer is not what was asked for"
    except Exception as error:  # whatever the client raises is what its users get
        result, wrong = None, f"{type(error).__name__}: {error}"
    print(json.dumps({"call": name, **({"error": wrong} if wrong else {})}), flush=True)
    return result


def refuse(act, status, words):
    try:
        act()
    except ApiException as error:
        return error.status == status and words in json.loads(error.body)["reason"]
    return False


def read(where, least):
    with urllib.request.urlopen(where) as answer:
        size = int(answer.headers["Content-Length"])
        return len(answer.read()) == size and size >= least


call("versions", versions.v2_list_supported_openshift_versions, lambda found: version in found)
call("component versions", versions.v2_list_component_versions)
call("release sources", versions.v2_list_release_sources)
call("default config", installer.v2_get_cluster_default_config, lambda found: found.cluster_networks_ipv4)
call("domains", domains.v2_list_managed_domains)
call("operators", operators.v2_list_supported_operators)
minor = ".".join(version.split(".")[:2])
cluster = call(
    "register the cluster",
    lambda: installer.v2_register_disconnected_cluster(
        models.DisconnectedClusterCreateParams(name="py", openshift_version=minor)
    ),
    lambda made: made.openshift_version == version,
)
call("get the cluster", lambda: installer.v2_get_cluster(cluster.id))
call("list clusters", installer.v2_list_clusters, lambda found: cluster.id in [each["id"] for each in found])
call("events", lambda: events.v2_list_events(cluster_id=cluster.id))
call("manifests", lambda: manifests.v2_list_cluster_manifests(cluster.id))
infra_env = call(
    "register the InfraEnv",
    lambda: installer.register_infra_env(
        models.InfraEnvCreateParams(
            name="py",
            pull_secret=secret,
            cluster_id=cluster.id,
            image_type="disconnected-iso",
            openshift_version=minor,
            ssh_authorized_key=KEY,
            rendezvous_ip="192.0.2.10",
            kernel_arguments=[{"operation": "append", "value": "a=b"}],
            static_network_config=[
                models.HostStaticNetworkConfig(
                    network_yaml=NETWORK,
                    mac_interface_map=[{"mac_address": "52:54:00:aa:bb:cc", "logical_nic_name": "eth0"}],
                )
            ],
        )
    ),
    lambda made: made.openshift_version == version and made.pull_secret_set,
)
call(
    "a version that the store does not have is refused",
    lambda: refuse(
        lambda: installer.register_infra_env(
            models.InfraEnvCreateParams(name="py", pull_secret=secret, openshift_version="4.1.1")
        ),
        400,
        "No OS image for Openshift version 4.1.1",
    ),
    lambda done: done,
)
call(
    "update the InfraEnv",
    lambda: installer.update_infra_env(
        infra_env.id, models.InfraEnvUpdateParams(additional_ntp_sources="192.0.2.1")
    ),
    lambda changed: changed.additional_ntp_sources == "192.0.2.1",
)
call("get the InfraEnv", lambda: installer.get_infra_env(infra_env.id), lambda got: got.rendezvous_ip == "192.0.2.10")
call(
    "list InfraEnvs",
    lambda: installer.list_infra_envs(cluster_id=cluster.id),
    lambda found: [each["id"] for each in found] == [infra_env.id],
)
call("hosts", lambda: installer.v2_list_hosts(infra_env.id))
signed = call("presigned URL", lambda: installer.get_infra_env_presigned_file_url(infra_env.id, "discovery.ign"))
call("download discovery.ign by the URL", lambda: read(signed.url, 100), lambda done: done)
call(
    "download discovery.ign",
    lambda: installer.v2_download_infra_env_files(infra_env.id, "discovery.ign", _preload_content=False),
    lambda answer: b"ignition" in answer.data,
)
image = call("image URL", lambda: installer.get_infra_env_download_url(infra_env.id))
call("download the image", lambda: read(image.url, 1 << 16), lambda done: done)
call("regenerate the key", lambda: installer.regenerate_infra_env_signing_key(infra_env.id))
call("delete the InfraEnv", lambda: installer.deregister_infra_env(infra_env.id))
call("delete the cluster", lambda: installer.v2_deregister_cluster(cluster.id))
call(
    "the cluster is gone",
    lambda: refuse(lambda: installer.v2_get_cluster(cluster.id), 404, "record not found"),
    lambda done: done,
)
