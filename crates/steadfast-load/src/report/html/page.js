// Shows the values at a point in time, by pointer and by keyboard.
const samples = JSON.parse(document.getElementById("samples").textContent);
const probe = document.getElementById("probe");
const slider = probe.querySelector("input");
const values = probe.querySelector("output");
const cursors = document.querySelectorAll(".cursor");

function show(at) {
  const [left, text] = samples[at];
  slider.value = at;
  slider.setAttribute("aria-valuetext", text);
  values.textContent = text;
  for (const cursor of cursors) {
    cursor.style.left = left + "%";
    cursor.hidden = false;
  }
}

function nearest(left) {
  let best = 0;
  samples.forEach(([other], at) => {
    if (Math.abs(other - left) < Math.abs(samples[best][0] - left)) best = at;
  });
  return best;
}

probe.hidden = false;
slider.addEventListener("input", () => show(Number(slider.value)));
for (const plot of document.querySelectorAll(".plot")) {
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    show(nearest((100 * (event.clientX - box.left)) / box.width));
  });
}
