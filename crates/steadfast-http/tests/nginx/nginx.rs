//! Runs nginx with its own configuration in its own folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};

pub(crate) struct Nginx {
    address: SocketAddr,
    server: SocketAddr,
    folder: PathBuf,
    running: Option<Child>,
}

impl Nginx {
    /// Starts nginx in front of the server with this address.
    pub(crate) async fn start(server: SocketAddr) -> Self {
        Self::prepare(server).await.run().await
    }

    /// Prepares nginx in front of the server with this address, without starting it.
    pub(crate) async fn prepare(server: SocketAddr) -> Self {
        let free = TcpSocket::new_v4().unwrap();
        free.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = free.local_addr().unwrap();
        let name = format!("steadfast-nginx-{}-{}", std::process::id(), address.port());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("nginx.conf"), configuration(address, server)).unwrap();
        Self {
            address,
            server,
            folder,
            running: None,
        }
    }

    pub(crate) async fn run(mut self) -> Self {
        // Debian installs it outside of the usual path.
        let debian = Path::new("/usr/sbin/nginx");
        let nginx = match debian.exists() {
            true => debian,
            false => Path::new("nginx"),
        };
        let nginx = Command::new(nginx)
            .arg("-p")
            .arg(&self.folder)
            .args(["-e", "stderr", "-c", "nginx.conf"])
            .stderr(Stdio::from(
                std::fs::File::create(self.folder.join("errors")).unwrap(),
            ))
            .spawn();
        self.running = Some(nginx.expect("nginx is installed: apt-get install nginx-light"));
        for _ in 0..1000 {
            if TcpStream::connect(self.address).await.is_ok() {
                return self;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let errors = std::fs::read_to_string(self.folder.join("errors"));
        panic!("nginx does not listen: {errors:?}");
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The address of the server behind it.
    pub(crate) fn server(&self) -> SocketAddr {
        self.server
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(nginx) = &mut self.running {
            // It is one process, so that this is all of it.
            let _ = nginx.kill();
            let _ = nginx.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn configuration(address: SocketAddr, server: SocketAddr) -> String {
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    limit_req_zone $server_addr zone=shared:64k rate=200r/s;
    upstream server {{ server {server} max_fails=0; keepalive 4; }}
    server {{
        listen {address} backlog=256;
        proxy_http_version 1.1;
        proxy_set_header Connection \"\";
        location / {{ proxy_pass http://server; }}
        location /limited-429 {{
            limit_req zone=shared;
            limit_req_status 429;
            proxy_pass http://server;
        }}
        location /limited-503 {{
            limit_req zone=shared burst=2 nodelay;
            error_page 503 = @shed;
            proxy_pass http://server;
        }}
        location @shed {{
            add_header X-Shed 1 always;
            return 503;
        }}
    }}
}}
"
    )
}
